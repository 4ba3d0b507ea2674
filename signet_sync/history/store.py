"""Stores what commits list already, so that nothing is listed twice, and caches what was read of each file.

Tables: history_told (one row), history_files.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from signet_sync.formats.snapshot import Signature
from signet_sync.history.commit import CachedBlob
from signet_sync.storage.database.connection import Database

_LISTED = "history_told"


def listed_sweep(database: Database) -> str | None:
    """Returns the newest sweep whose promotions a commit lists."""
    found: str | None = database.state(_LISTED, "sweep_id")
    return found


def set_listed_sweep(database: Database, sweep_id: str) -> None:
    """Records it. In the caller's transaction."""
    database.set_state(_LISTED, "sweep_id", sweep_id)


def listed_ends(database: Database) -> tuple[str, frozenset[str]] | None:
    """Returns up to when (ISO 8601 UTC) commits list ends of sessions, and the flows shortly before that are listed."""
    ended_at, keys = database.state(_LISTED, "ended_at"), database.state(_LISTED, "flow_keys")
    return (ended_at, frozenset(json.loads(keys))) if ended_at and keys else None


def set_listed_ends(database: Database, ended_at: str, flow_keys: Sequence[str]) -> None:
    """Records it. In the caller's transaction."""
    database.set_state(_LISTED, "ended_at", ended_at)
    database.set_state(_LISTED, "flow_keys", json.dumps(flow_keys))


def cached_files(database: Database, rules: str) -> dict[str, CachedBlob]:
    """Returns the cache by path if it was made with these rules, else nothing."""
    rows = database.execute(
        "select path, size, mtime_ns, ctime_ns, inode, oid, skipped from history_files where rules = ?", (rules,)
    )
    return {
        path: CachedBlob(Signature(*signature), oid or "", skipped or "") for path, *signature, oid, skipped in rows
    }


def update_cache(database: Database, rules: str, learnt: Mapping[str, CachedBlob], forgotten: Collection[str]) -> None:
    """Updates the cache; drops rows made with other rules. In the caller's transaction."""
    database.execute("delete from history_files where rules <> ?", (rules,))
    database.executemany("delete from history_files where path = ?", [(path,) for path in forgotten if _storable(path)])
    database.executemany(
        "insert or replace into history_files(path, size, mtime_ns, ctime_ns, inode, oid, skipped, rules)"
        " values(?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (path, *signature, oid or None, skipped or None, rules)
            for path, (signature, oid, skipped) in learnt.items()
            if _storable(path)
        ],
    )


def _storable(path: str) -> bool:
    """Returns whether a path is valid text; one whose bytes are not UTF-8 is read every time."""
    return path.isascii() or not any("\ud800" <= character <= "\udfff" for character in path)
