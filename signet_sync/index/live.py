"""Live transcript buffers: the turns of sessions that still run, until their canonical files are written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from signet_sync.index.database import Database


class LiveTurn(NamedTuple):
    """One buffered turn; `content` is sanitized, `at` ISO 8601 UTC."""

    turn: int
    role: str
    content: str
    at: str


def buffer(database: Database, agent_id: str, session_key: str, turns: Iterable[LiveTurn]) -> int:
    """Adds turns that are not buffered yet; gives how many were new. Inside the caller's transaction."""
    before = database.value("select total_changes()")
    database.executemany(
        "insert or ignore into session_transcripts(agent_id, session_key, turn, role, content, at)"
        " values(?, ?, ?, ?, ?, ?)",
        [(agent_id, session_key, *turn) for turn in turns],
    )
    added: int = database.value("select total_changes()") - before
    return added


def buffered(database: Database, agent_id: str, session_key: str) -> list[LiveTurn]:
    """The buffered turns of a session, in order."""
    return [
        LiveTurn(*row)
        for row in database.execute(
            "select turn, role, content, at from session_transcripts where agent_id = ? and session_key = ?"
            " order by turn",
            (agent_id, session_key),
        )
    ]


def reset(database: Database, agent_id: str, session_key: str) -> None:
    """Forgets the buffered turns of a session. Inside the caller's transaction."""
    database.execute("delete from session_transcripts where agent_id = ? and session_key = ?", (agent_id, session_key))


def any_buffered(database: Database, agent_id: str, session_key: str) -> bool:
    """Whether turns of a session are buffered."""
    return bool(
        database.value(
            "select exists(select 1 from session_transcripts where agent_id = ? and session_key = ?)",
            (agent_id, session_key),
        )
    )
