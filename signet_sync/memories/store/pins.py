"""Stores pins: ids that neither decay nor a budget removes from MEMORY.md. Native rows."""

from __future__ import annotations

from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import composed


def pin(database: Database, agent_id: str, node_id: str, now_iso: str) -> bool:
    """Pins an id; returns False if it was pinned. In the caller's transaction."""
    if is_pinned(database, agent_id, node_id):
        return False
    database.execute("insert into pins(agent_id, id, pinned_at) values(?, ?, ?)", (agent_id, node_id, now_iso))
    composed.forget(database, [agent_id])
    return True


def unpin(database: Database, agent_id: str, node_id: str) -> bool:
    """Unpins an id; returns False if it was not pinned. In the caller's transaction."""
    if not is_pinned(database, agent_id, node_id):
        return False
    database.execute("delete from pins where agent_id = ? and id = ?", (agent_id, node_id))
    composed.forget(database, [agent_id])
    return True


def is_pinned(database: Database, agent_id: str, node_id: str) -> bool:
    """Checks whether an id is pinned."""
    pinned = "select exists(select 1 from pins where agent_id = ? and id = ?)"
    return bool(database.value(pinned, (agent_id, node_id)))


def pinned(database: Database, agent_id: str) -> dict[str, str]:
    """Returns what an agent pinned, with the time (ISO 8601 UTC); the newest first."""
    sql = "select id, pinned_at from pins where agent_id = ? order by pinned_at desc, id"
    return dict(database.execute(sql, (agent_id,)))
