"""Reads what happened on some days."""

from __future__ import annotations

import os
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import partial

from signet_sync.errors import UsageError
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import instant_of, moment_of
from signet_sync.pages.own_project import of_path
from signet_sync.pages.period import PeriodInputs
from signet_sync.pages.store import period_inputs
from signet_sync.pages.store.project_inputs import recorded_origin
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import IndexPlace, reading
from signet_sync.text.sentences import basename


def read(
    place: IndexPlace, agent_id: str, now_us: int, days: int, project: str | None, zone: tzinfo | None
) -> PeriodInputs:
    """Returns what happened today and on the days before, `days` in all, of all projects or one (name, path or origin).

    Days are those of `zone`; None is the machine's own time zone.

    Raises `UsageError` for a project without sessions, `WorkspaceError`, `DatabaseError`.
    """
    today = moment_of(now_us).astimezone(zone).date()
    # Of a date without a zone, `astimezone` takes the midnight of the machine's own, whatever its offset was that day.
    from_us, to_us = (
        instant_of(datetime.combine(today + timedelta(days=off), time.min, zone).astimezone(UTC))
        for off in (1 - days, 1)
    )
    with reading(place) as database:
        belongs = None
        if project is not None:
            belongs = projects_called(database, agent_id, project).__contains__
        found = period_inputs.period_inputs(database, agent_id, from_us, to_us, belongs)
    return found._replace(zone=zone)


def projects_called(database: Database, agent_id: str, project: str) -> set[str]:
    """Returns the recorded projects that a name, path or origin means. Raises `UsageError` if there are none."""
    _, is_at = of_path(os.path.abspath(project), partial(recorded_origin, database, agent_id))
    names = project.casefold(), project.rstrip("/").casefold()
    known = period_inputs.projects(database, agent_id)
    chosen = {one for one in known if one.casefold() in names or basename(one).casefold() in names or is_at(one)}
    if not chosen:
        raise UsageError(
            f"no session belongs to the project {display(project)}",
            hint=f"known: {', '.join(map(display, known[:8])) or 'none yet'}",
            code="unknown-project",
        )
    return chosen
