"""Stores pins: ids that neither decay nor a budget removes from MEMORY.md. Native rows.

A pin of an id that a thread or fact had before is a pin of it.
"""

from __future__ import annotations

from signet_sync.graph.store.former_ids import former_ids, present_id
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
    database.executemany(
        "delete from pins where agent_id = ? and id = ?", [(agent_id, one) for one in _ids(database, agent_id, node_id)]
    )
    composed.forget(database, [agent_id])
    return True


def is_pinned(database: Database, agent_id: str, node_id: str) -> bool:
    """Checks whether an id is pinned."""
    pinned = "select exists(select 1 from pins where agent_id = ? and id = ?)"
    return any(database.value(pinned, (agent_id, one)) for one in _ids(database, agent_id, node_id))


def pinned(database: Database, agent_id: str) -> dict[str, str]:
    """Returns what an agent pinned, by the ids of today, with the time (ISO 8601 UTC); the newest first."""
    rows = database.execute(
        "select id, pinned_at from pins where agent_id = ? order by pinned_at desc, id", (agent_id,)
    )
    return {present_id(database, agent_id, one): at for one, at in rows}


def _ids(database: Database, agent_id: str, node_id: str) -> list[str]:
    return [node_id, *former_ids(database, agent_id, node_id)]
