"""Pins and unpins what a handle refers to, updates the agent's MEMORY.md, and lists what is pinned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import KINDS
from signet_sync.formats.handle import LETTERS
from signet_sync.formats.ids import require_agent
from signet_sync.formats.timestamps import iso
from signet_sync.graph.store import passages
from signet_sync.memories import operations
from signet_sync.memories.store import pins
from signet_sync.recall.store import references
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.sync.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Pinned:
    """The id that a handle refers to, and whether pinning or unpinning changed anything."""

    id: str
    changed: bool
    waiting: str


def pin(workspace: Workspace, agent_id: str, handle: str, now_us: int) -> Pinned:
    """Pins what a handle refers to in MEMORY.md.

    Raises `UsageError` if it refers to nothing, or to something without a line; `WorkspaceError`, `DatabaseError`.
    """
    require_agent(agent_id)
    with state_dir.workspace_lock(workspace.state):
        operations.first_pass(workspace, now_us)
        found = references.resolve(workspace.database, agent_id, handle).id
        if LETTERS[found[0]] in KINDS:
            raise UsageError(
                f"{found} is an entity file, which cannot be pinned to MEMORY.md",
                hint=f"signet-sync entity protect pin {found} prevents agents from changing it",
                code="not-pinnable",
            )
        if references.is_left_out(workspace.database, agent_id, found):
            raise UsageError(
                f"{found} is of a session that MEMORY.md leaves out: no content, a test, or a temporary folder",
                hint="signet-sync remember TEXT keeps what matters of it",
                code="not-pinnable",
            )
        with workspace.database.transaction(durable=True):
            changed = pins.pin(workspace.database, agent_id, found, iso(now_us))
        return Pinned(found, changed, operations.settle(workspace, agent_id, now_us))


class Pin(NamedTuple):
    """A pinned thing, one line about it (None if it no longer exists), and since when it is pinned (ISO 8601 UTC)."""

    id: str
    text: str | None
    pinned_at: str


def pinned(database: Database, agent_id: str) -> list[Pin]:
    """Returns what an agent has pinned, the newest first."""
    found = pins.pinned(database, agent_id)
    texts = passages.labels(database, agent_id, list(found))
    return [Pin(one, texts.get(one), at) for one, at in found.items()]


def unpin(workspace: Workspace, agent_id: str, handle: str, now_us: int) -> Pinned:
    """Unpins what a handle refers to. A pinned thing that no longer exists needs its full id.

    Raises `UsageError`, `WorkspaceError`, `DatabaseError`.
    """
    require_agent(agent_id)
    with state_dir.workspace_lock(workspace.state):
        bare = handle.strip().removeprefix("^")
        pinned = pins.is_pinned(workspace.database, agent_id, bare)
        found = bare if pinned else references.resolve(workspace.database, agent_id, handle).id
        with workspace.database.transaction(durable=True):
            changed = pins.unpin(workspace.database, agent_id, found)
        return Pinned(found, changed, operations.settle(workspace, agent_id, now_us))
