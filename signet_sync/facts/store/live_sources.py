"""Stores which running sessions state something, as the sources of their facts.

The number of such a source is that of its session, below 0, so that no artifact has it. Everything runs in the caller's
transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from signet_sync.storage.database import batches
from signet_sync.storage.database.batches import Session
from signet_sync.storage.database.connection import Database

# The deriver of what running sessions state.
LIVE_FACTS = "live facts"

_COLUMNS = "agent_id, session_token, session_id, source_path, project"


class LiveSource(NamedTuple):
    """What stands for a running session in the place of an artifact's path, and its project (empty: none)."""

    path: str
    project: str


def stored(database: Database, sessions: Iterable[Session]) -> dict[Session, LiveSource]:
    """Returns the sources of those of some sessions that state something."""
    rows = batches.of_sessions(database, _COLUMNS, "live_sources", list(sessions))
    return {row[:3]: LiveSource(*row[3:]) for row in rows}


def projects(database: Database, agent_id: str) -> list[str]:
    """Returns the projects of an agent's running sessions that state something."""
    rows = database.execute("select distinct project from live_sources where agent_id = ? order by 1", (agent_id,))
    return [project for (project,) in rows if project]


def replace(database: Database, wanted: Mapping[Session, LiveSource | None]) -> set[Session]:
    """Makes the sources of some sessions equal to the given ones; returns the sessions that changed."""
    held = stored(database, wanted)
    changed = {session for session, one in wanted.items() if held.get(session) != one}
    batches.number(database, sorted(session for session in changed if wanted[session] is not None))
    numbers = batches.numbers(database, sorted(changed))
    database.executemany(
        "delete from live_sources where session = ?", [(numbers[one],) for one in sorted(changed & held.keys())]
    )
    database.executemany(
        f"insert into live_sources(session, {_COLUMNS}) values(?, ?, ?, ?, ?, ?)",
        [(numbers[one], *one, *source) for one in sorted(changed) if (source := wanted[one]) is not None],
    )
    return changed
