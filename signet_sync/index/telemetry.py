"""How often an artifact was found or opened, and when last: native rows that no rebuild touches."""

from __future__ import annotations

from collections.abc import Sequence

from signet_sync.errors import DatabaseError
from signet_sync.index.database import Database


def count_accesses(database: Database, artifacts: Sequence[tuple[str, str]], now_iso: str) -> bool:
    """One more access for each (agent, path); False where the database was busy: no answer waits for a counter."""
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
    """Agent, path, number and last time, most accessed first."""
    where, bindings = ("", ()) if agent_id is None else (" where agent_id = ?", (agent_id,))
    return list(
        database.execute(
            f"select agent_id, source_path, accesses, last_accessed_at from artifact_telemetry{where}"
            " order by accesses desc, source_path",
            bindings,
        )
    )


def reset(database: Database, agent_id: str | None = None) -> int:
    """Forgets the counters (of one agent); the only way they ever shrink but for removals."""
    where, bindings = ("", ()) if agent_id is None else (" where agent_id = ?", (agent_id,))
    with database.transaction():
        count: int = database.value(f"select count(*) from artifact_telemetry{where}", bindings)
        database.execute(f"delete from artifact_telemetry{where}", bindings)
    return count
