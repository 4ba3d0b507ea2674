"""Drops the memories that a backup does not have: so a person goes back to what was before a migration."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

from signet_sync.backup.incoming import Incoming
from signet_sync.memories.store import memories
from signet_sync.storage import state_dir
from signet_sync.sync import engine
from signet_sync.sync.request import Request
from signet_sync.sync.workspace import Workspace


def others(workspace: Workspace, incoming: Incoming) -> list[tuple[str, str]]:
    """Returns agent and id of the memories that are here and not in a backup."""
    return sorted({*memories.ids(workspace.database)} - {*memories.ids(incoming.rows)})


def drop_others(workspace: Workspace, incoming: Incoming, now_us: int) -> None:
    """Drops them from rows and pages. It is no removal: backups keep them, and they may be brought again.

    Raises `WorkspaceError`, `DatabaseError`.
    """
    with state_dir.workspace_lock(workspace.state):
        gone = others(workspace, incoming)
        with workspace.database.transaction(durable=True):
            for agent_id, some in groupby(gone, itemgetter(0)):
                memories.drop(workspace.database, agent_id, [memory_id for _, memory_id in some])
        engine.run_locked(workspace, Request(now_us=now_us))
