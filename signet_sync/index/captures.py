"""Which transcripts of harnesses were read, and what they looked like then."""

from __future__ import annotations

from typing import NamedTuple

from signet_sync.index.database import Database


class Mark(NamedTuple):
    """A transcript as it was when it was read; size in bytes, time in nanoseconds, `outcome` for a person."""

    size: int
    mtime_ns: int
    agent_id: str
    outcome: str


def mark_of(database: Database, harness: str, path: str, session_id: str) -> Mark | None:
    """The mark of a transcript, or None where it was never read."""
    for row in database.execute(
        "select size, mtime_ns, agent_id, outcome from captures where harness = ? and path = ? and session_id = ?",
        (harness, path, session_id),
    ):
        return Mark(*row)
    return None


def mark(database: Database, harness: str, path: str, session_id: str, seen: Mark, at: str) -> None:
    """Remembers a transcript as it was read; only if something about it differs."""
    if mark_of(database, harness, path, session_id) == seen:
        return
    with database.transaction():
        database.execute(
            "insert or replace into captures(harness, path, session_id, size, mtime_ns, agent_id, outcome, at)"
            " values(?, ?, ?, ?, ?, ?, ?, ?)",
            (harness, path, session_id, *seen, at),
        )
