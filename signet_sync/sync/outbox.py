"""Keeps what derivers still have to follow: one row for each of them and each source, newest sessions first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from signet_sync.index.database import Database
from signet_sync.sync.stages import MANIFEST, SESSION, Source

# Behind every instant: what is gone, and what another deriver moved, does not wait for older sessions.
AT_ONCE = 1 << 62

_ROW = "deriver = ? and kind = ? and agent_id = ? and session_token = ? and session_id = ?"


def put(database: Database, deriver: str, sources: Iterable[Source]) -> None:
    """Writes what a deriver has to follow. In the caller's transaction."""
    database.executemany(
        "insert or replace into outbox(deriver, kind, agent_id, session_token, session_id, at_us)"
        " values(?, ?, ?, ?, ?, ?)",
        [(deriver, *source, _instant(database, source)) for source in sources],
    )


def _instant(database: Database, source: Source) -> int:
    """The newest instant of a session's artifacts."""
    if source.kind not in (SESSION, MANIFEST):
        return AT_ONCE
    newest: int | None = database.value(
        "select max(membership_us) from memory_artifacts where agent_id = ? and session_token = ? and session_id = ?",
        source.session,
    )
    return AT_ONCE if newest is None else newest


def newest(database: Database, deriver: str, limit: int, since_us: int = 0) -> list[Source]:
    """What a deriver follows next, of nothing before an instant."""
    rows = database.execute(
        "select kind, agent_id, session_token, session_id from outbox where deriver = ? and at_us >= ?"
        " order by at_us desc, kind, agent_id, session_token, session_id limit ?",
        (deriver, since_us, limit),
    )
    return [Source(*row) for row in rows]


def take(database: Database, deriver: str, sources: Sequence[Source]) -> None:
    """Takes out what a deriver has followed. In the caller's transaction."""
    database.executemany(f"delete from outbox where {_ROW}", [(deriver, *source) for source in sources])


def waits(database: Database, deriver: str) -> bool:
    """Says whether a deriver has anything left to follow."""
    return bool(database.value("select exists(select 1 from outbox where deriver = ?)", (deriver,)))


def any_waits(database: Database) -> bool:
    """Says whether anything is left to follow."""
    return holds(database, 1)


def holds(database: Database, count: int) -> bool:
    """Says whether so many rows are left."""
    return bool(database.value("select exists(select 1 from outbox limit 1 offset ?)", (count - 1,)))


def backlog(database: Database) -> int:
    """The number of sources that some deriver has still to follow."""
    count: int = database.value(
        "select count(*) from (select distinct kind, agent_id, session_token, session_id from outbox)"
    )
    return count
