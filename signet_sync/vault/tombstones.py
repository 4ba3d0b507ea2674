"""Tombstone files: written once, durable before anything is deleted, taken away only by an explicit undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from signet_sync.contracts.frontmatter import write
from signet_sync.contracts.names import tombstone_file_name
from signet_sync.contracts.observed import Found
from signet_sync.contracts.places import TOMBSTONES
from signet_sync.vault import files

if TYPE_CHECKING:
    from signet_sync.contracts.artifacts import Tombstone


def path_of(agent_id: str, token: str) -> str:
    """Where the tombstone of an agent's token stands."""
    return f"{TOMBSTONES}/{tombstone_file_name(agent_id, token)}"


def text_of(stone: Tombstone) -> bytes:
    """The file of a tombstone: fields only, `session_ids` only where it is limited to some."""
    fields: dict[str, Any] = stone.fields()
    if not stone.session_ids:
        del fields["session_ids"]
    return write(fields, "")


def put(root: str, stone: Tombstone) -> str:
    """Writes a tombstone durably; an equal one is left as it is. Gives its path."""
    path = path_of(stone.agent_id, stone.session_token)
    data = text_of(stone)
    found = files.read(root, path, 1 << 20)
    if isinstance(found, Found):
        if found.raw != data:
            files.replace(root, path, data, found.raw)
        return path
    try:
        files.create_once(root, path, data)
    except FileExistsError:
        files.replace(root, path, data, None)
    return path
