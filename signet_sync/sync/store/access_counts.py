"""Counts how often artifacts, nodes, statements and memories were found or opened, and when last, in native rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from signet_sync.errors import DatabaseError
from signet_sync.formats.handle import HANDLE, ID_LENGTH
from signet_sync.storage.database.connection import Database

_TABLES = ("artifact_telemetry", "node_telemetry")


def count_accesses(database: Database, artifacts: Sequence[tuple[str, str]], now_iso: str) -> bool:
    """Adds an access for each (agent, path). Returns False if the database is busy."""
    if not artifacts:
        return True
    try:
        with database.transaction():
            database.executemany(
                "insert into artifact_telemetry(agent_id, source_path, accesses, last_accessed_at) values(?, ?, 1, ?)"
                " on conflict(agent_id, source_path) do update set accesses = accesses + 1,"
                " last_accessed_at = max(last_accessed_at, excluded.last_accessed_at)",
                [(agent_id, path, now_iso) for agent_id, path in artifacts],
            )
    except DatabaseError:
        return False
    return True


def count_ids(database: Database, agent_id: str, ids: Iterable[str], day: str) -> bool:
    """Adds an access on a UTC day (`YYYY-MM-DD`) for each id of a node, thread, statement or memory.

    Other text is skipped. Returns False if the database is busy. What was counted up to the last day before stays
    known beside it, because a page shows what counted when its day began.
    """
    found = sorted({node_id for node_id in ids if len(node_id) == ID_LENGTH and HANDLE.fullmatch(node_id)})
    if not found:
        return True
    try:
        with database.transaction():
            database.executemany(
                "insert into node_telemetry(agent_id, id, accesses, last_day, before) values(?, ?, 1, ?, 0)"
                " on conflict(agent_id, id) do update set"
                " before = iif(excluded.last_day > last_day, accesses, before),"
                " before_day = iif(excluded.last_day > last_day, last_day, before_day),"
                " accesses = accesses + 1, last_day = max(last_day, excluded.last_day)",
                [(agent_id, node_id, day) for node_id in found],
            )
    except DatabaseError:
        return False
    return True


def forget(database: Database, artifacts: Sequence[tuple[str, str]]) -> None:
    """Forgets the accesses of some artifacts (agent, path). In the caller's transaction."""
    database.executemany("delete from artifact_telemetry where agent_id = ? and source_path = ?", artifacts)


def totals(database: Database) -> tuple[int, int, int]:
    """Returns how many artifacts and how many ids have counters, and the sum of all of them."""
    (artifacts, found), (ids, asked) = (
        next(database.execute(f"select count(*), coalesce(sum(accesses), 0) from {table}")) for table in _TABLES
    )
    return artifacts, ids, found + asked


def reset(database: Database) -> int:
    """Forgets the counters, and returns how many; the only way they ever shrink but for removals. Pins stay."""
    with database.transaction():
        artifacts, ids, _ = totals(database)
        for table in _TABLES:
            database.execute(f"delete from {table}")
    return artifacts + ids
