"""Returns the context for a session of an agent, at its start and on a prompt, and what happened on some days."""

import os
import shlex
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import partial
from typing import Any

from signet_sync.capture import injections
from signet_sync.errors import DatabaseError, UsageError
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import instant_of, moment_of
from signet_sync.pages.context import SessionContext, compose, name_project
from signet_sync.pages.period import PeriodInputs
from signet_sync.pages.project_context import project_text
from signet_sync.pages.sections import NAME_LENGTH
from signet_sync.pages.store import period_inputs
from signet_sync.pages.store.project_inputs import project_inputs, recorded_origin
from signet_sync.storage.database.connection import Database
from signet_sync.storage.locations import now_us
from signet_sync.sync.read_only import IndexPlace, count_ids, reading
from signet_sync.sync.store import sessions
from signet_sync.text.sentences import basename, flatten_cell, unescape
from signet_sync.text.token_estimate import estimate_tokens

_LONGEST = 4_096  # characters of a path
_PASSAGE = 400  # characters of a transcript


def compose_at_start(
    place: IndexPlace,
    agent_id: str,
    *,
    shared: bool = False,
    budget: int | None = None,
    project: str | None = None,
    called: str | None = None,
    now: int | None = None,
) -> SessionContext:
    """Returns where the project at a path stands, what holds of it and of the person, and the identity files.

    `called` is a recorded project's name, path or origin, which comes before the path.
    `now` is in microseconds since 1970 (default: the present). With `shared` the identity files only. In at most
    `budget` tokens (else the setting). If the index cannot be read, MEMORY.md takes the place of what is made of it.
    Raises `UsageError` for a project that is not recorded, `WorkspaceError`.
    """
    trouble = []
    memory = None
    # Opening the index also finishes a removal that was interrupted.
    try:
        with reading(place) as database:
            if not shared:
                name, belongs = name_project(project, partial(recorded_origin, database, agent_id))
                if called is not None and (project is None or _find_projects(database, agent_id, called, project)):
                    chosen = projects_called(database, agent_id, called, project)
                    name, belongs, project = min(chosen), chosen.__contains__, min(chosen)
                instant = now_us() if now is None else now
                seen = project_inputs(database, agent_id, instant, belongs, project)
                if name and not seen.threads:  # perhaps it has no origin, and was at another path
                    known = period_inputs.projects(database, agent_id)
                    alike = [one for one in known if basename(one).casefold() == basename(name).casefold()]
                    for one in alike[:1]:
                        command = place.command_line(f"context --project {shlex.quote(one)}")
                        trouble = [f"nothing is known of {display(name)}; what is known of {display(one)}: {command}"]
                memory = partial(project_text, seen, name, instant)
    except DatabaseError as error:
        if os.path.exists(place.database):
            trouble = [f"the index cannot be read: {error.message}"]
    limit = place.settings().context_budget_tokens if budget is None else budget
    composed = compose(place.root, agent_id, shared=shared, limit=limit, size=estimate_tokens, memory=memory)
    return composed._replace(troubles=[*trouble, *composed.troubles])


def compose_at_prompt(
    place: IndexPlace,
    agent_id: str,
    prompt: str,
    *,
    shared: bool = False,
    budget: int | None = None,
    counted: bool = True,
) -> SessionContext:
    """Returns what memory holds on a prompt, in at most `budget` tokens; it counts as seen unless not `counted`.

    Raises `WorkspaceError`, `DatabaseError`.
    """
    from signet_sync.capture.worker import catch_up
    from signet_sync.pages.prompt_context import compose_prompt_context  # slow import, not needed at a session's start

    if counted and not shared:
        catch_up(place, agent_id)
    with reading(place) as database:
        composed = compose_prompt_context(place.root, database, agent_id, prompt, shared=shared, budget=budget)
    if counted:
        count_ids(place, agent_id, composed.ids)
    return composed


def last(place: IndexPlace, agent_id: str, session_id: str) -> dict[str, Any]:
    """Returns the document of `context --last --json`: what hooks injected into a session, in today's words.

    It is the newest whose id begins so. The text of what is no longer there is None; `files` and `quotes` count whole
    files and quotes; the id of a session without a turn is known only if it is given. Raises `UsageError` if nothing is
    recorded.
    """
    from signet_sync.graph.store import neighbours
    from signet_sync.pages.prompt_context import words_of  # slow import, not needed at a session's start
    from signet_sync.sessions.live import store as live

    folder = place.state()
    with reading(place) as database:
        known = [ref.session_id for ref in sessions.every(database) if ref.agent_id == agent_id]
        known += [one or key for key, one, *_ in live.sessions(database, agent_id)]
        named = [session_id] if injections.read(folder, agent_id, session_id) else known
        told = [
            (record, one)
            for one in named
            if one.startswith(session_id) and (record := injections.read(folder, agent_id, one)) is not None
        ]
        if not session_id:
            told += [(record, "") for record in injections.list_changed(folder, 0) if record.agent_id == agent_id]
        if not told:
            what = (
                f"nothing is recorded for session {display(session_id)} of" if session_id else "nothing was told yet to"
            )
            hint = "give the harness's own id of a session of the last 30 days, or none for the newest"
            hint = (
                hint if session_id else "with hooks a session is told something at its start: signet-sync hooks status"
            )
            raise UsageError(f"{what} agent {agent_id}", hint=hint, code="unknown-session")
        record, session_id = max(told, key=lambda one: one[0].at)
        texts = words_of(database, agent_id, record.ids)
        for one in record.at_prompts:
            if one.startswith("k-") and (chunk := neighbours.node(database, agent_id, one)) is not None:
                passage = neighbours.find_passage(database, chunk, one)
                texts[one] = neighbours.node_text(database, passage, _PASSAGE).text
    start = dict.fromkeys(one for one in record.lines.values() if one in record.ids)
    return {
        "session_id": session_id,
        "files": sum(not one for one in record.lines.values()),
        "quotes": sum(one.startswith(injections.QUOTED) for one in record.lines.values()),
        "start": [{"id": one, "text": texts.get(one)} for one in start],
        "prompts": [{"id": one, "text": texts.get(one)} for one in record.at_prompts],
    }


def document(agent_id: str, composed: SessionContext, *, shared: bool) -> dict[str, Any]:
    """Returns the document of `context --json`."""
    return {
        "agent_id": agent_id,
        "scope": "shared" if shared else "main",
        "tokens": estimate_tokens(composed.text),
        "text": composed.text,
        "sources": composed.sources,
    }


def days(
    place: IndexPlace, agent_id: str, now_us: int, days: int, project: str | None, zone: tzinfo | None
) -> PeriodInputs:
    """Returns what happened today and on the days before, `days` in all, of all projects or one (name, path or origin).

    Raises `UsageError` for a project without sessions, `WorkspaceError`, `DatabaseError`.
    """
    today = moment_of(now_us).astimezone(zone).date()
    # Of a date without a zone, `astimezone` takes the midnight of the machine's own, whatever its offset was that day.
    from_us, to_us = (
        instant_of(datetime.combine(today + timedelta(days=off), time.min, zone).astimezone(UTC))
        for off in (1 - days, 1)
    )
    with reading(place) as database:
        is_path = project and (os.path.isabs(project) or os.path.exists(project))
        folder = os.path.abspath(project) if project and is_path else None
        chosen = None if project is None else projects_called(database, agent_id, project, folder)
        return period_inputs.period_inputs(database, agent_id, from_us, to_us, chosen)._replace(zone=zone)


def projects_called(database: Database, agent_id: str, project: str, path: str | None) -> set[str]:
    """Returns the recorded projects that a name, path or origin means. Raises `UsageError` if there are none."""
    chosen = _find_projects(database, agent_id, project, path)
    if not chosen:
        known = period_inputs.projects(database, agent_id)
        hint = f"known: {', '.join(map(display, known[:8])) or 'none yet'}"
        raise UsageError(f"no session belongs to the project {display(project)}", hint=hint, code="unknown-project")
    return chosen


def _find_projects(database: Database, agent_id: str, project: str, path: str | None) -> set[str]:
    """Returns the projects that a name means as a page shows it: the last parts of an identity, perhaps cut."""
    _, is_at = name_project(path, partial(recorded_origin, database, agent_id))
    # A page adds the key that the sessions of a thread share.
    whole = flatten_cell(unescape(project), _LONGEST).rstrip("/").casefold()
    names = {whole, whole.partition(" · ")[0]}

    def is_called(one: str) -> bool:
        shown = flatten_cell(one, _LONGEST).rstrip("/").casefold()
        cut = flatten_cell(basename(one), NAME_LENGTH).casefold()
        return cut in names or any(f"/{shown}".endswith(f"/{name}") for name in names)

    return {one for one in period_inputs.projects(database, agent_id) if is_called(one) or is_at(one)}
