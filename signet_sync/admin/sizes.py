"""Measures disk usage by kind, so that the user can judge the retention settings."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from signet_sync.integrity import store as integrity_store
from signet_sync.memories.store import recall_events
from signet_sync.storage.database.connection import list_set_aside

if TYPE_CHECKING:
    from signet_sync.storage.database.connection import Database
    from signet_sync.storage.state_dir import StateFolder


def on_disk(database: str, folder: StateFolder) -> dict[str, int]:
    """Returns bytes of the database, its log (`wal`), folders of the state folder, and all of it together (`state`).

    `damaged` are databases that were moved aside.
    """
    return {
        "database": _size(database),
        "wal": _size(f"{database}-wal"),
        "damaged": sum(map(_size, list_set_aside(database))),
        "backups": _below(folder.backups),
        "logs": _below(folder.logs),
        "live": _below(folder.live),
        "spool": _below(folder.spool),
        "state": _below(folder.path),
    }


def inside(database: Database) -> tuple[dict[str, int], dict[str, int]]:
    """Returns bytes and row counts of what the database keeps besides derived rows.

    `unused` is space in the database's file that dropped rows have left and new ones will fill.
    """
    kept = {"seals": integrity_store.bytes_used(database), "recall_events": recall_events.bytes_used(database)}
    unused = database.value("pragma freelist_count") * database.value("pragma page_size")
    rows = {name: count for name, (count, _) in kept.items()}
    rows |= {name: database.value(f"select count(*) from {name}") for name in ("memories", "pins")}
    return {name: size for name, (_, size) in kept.items()} | {"unused": unused}, rows


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _below(folder: str) -> int:
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(where, name)).st_size
    return total
