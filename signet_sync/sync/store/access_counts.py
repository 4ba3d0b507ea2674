"""Counts how often artifacts, nodes, facts and memories were found or opened, and when last, in native rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from signet_sync.errors import DatabaseError
from signet_sync.formats.handle import HANDLE, ID_LENGTH
from signet_sync.storage.database.connection import Database


class NodeAccesses(NamedTuple):
    """How often an id of the graph was asked for, and on which UTC day last; `label` is None where it is gone."""

    agent_id: str
    id: str
    accesses: int
    last_day: str
    label: str | None


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


def accesses(database: Database, agent_id: str | None = None) -> list[tuple[str, str, int, str]]:
    """Returns agent, path, number and last time, most accessed first."""
    where, bindings = ("", ()) if agent_id is None else (" where agent_id = ?", (agent_id,))
    return list(
        database.execute(
            f"select agent_id, source_path, accesses, last_accessed_at from artifact_telemetry{where}"
            " order by accesses desc, source_path",
            bindings,
        )
    )


def count_ids(database: Database, agent_id: str, ids: Iterable[str], day: str) -> bool:
    """Adds an access on a UTC day (`YYYY-MM-DD`) for each id of a node, thread, fact or memory.

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


def node_accesses(database: Database, agent_id: str | None = None) -> list[NodeAccesses]:
    """Returns the accesses of nodes, facts, threads and memories, most accessed first."""
    where, bindings = ("", ()) if agent_id is None else (" where t.agent_id = ?", (agent_id,))
    return [
        NodeAccesses(*row)
        for row in database.execute(
            "select t.agent_id, t.id, t.accesses, t.last_day, coalesce(s.label, r.text) from node_telemetry t"
            " left join session_summaries s on s.agent_id = t.agent_id and s.id = t.id"
            f" left join recall_lines r on r.agent_id = t.agent_id and r.id = t.id{where}"
            " order by t.accesses desc, t.agent_id, t.id",
            bindings,
        )
    ]


def forget(database: Database, artifacts: Sequence[tuple[str, str]]) -> None:
    """Forgets the accesses of some artifacts (agent, path). In the caller's transaction."""
    database.executemany("delete from artifact_telemetry where agent_id = ? and source_path = ?", artifacts)


def reset(database: Database, agent_id: str | None = None) -> int:
    """Forgets the counters (of one agent); the only way they ever shrink but for removals. Pins stay."""
    where, bindings = ("", ()) if agent_id is None else (" where agent_id = ?", (agent_id,))
    count = 0
    with database.transaction():
        for table in ("artifact_telemetry", "node_telemetry"):
            count += database.value(f"select count(*) from {table}{where}", bindings)
            database.execute(f"delete from {table}{where}", bindings)
    return count
