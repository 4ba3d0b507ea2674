"""Stores what commits list already, so that nothing is listed twice, and caches what was read of each file.

Tables: history_told (one row), history_files.
"""

from __future__ import annotations

from signet_sync.formats.snapshot import Signature
from signet_sync.history.commit import Cache
from signet_sync.storage.database.connection import Database

# What commits list: `sweep_id` is the newest sweep whose promotions, `ended_at` (ISO 8601 UTC) up to when the ends of
# sessions, `flow_keys` the flows shortly before that.
LISTED = "history_told"


def cached_files(database: Database, rules: str) -> Cache:
    """Returns the cache by path if it was made with these rules, else nothing."""
    rows = database.execute(
        "select path, size, mtime_ns, ctime_ns, inode, oid, skipped from history_files where rules = ?", (rules,)
    )
    return {path: (Signature(*signature), oid or "", skipped or "") for path, *signature, oid, skipped in rows}


def update_cache(database: Database, rules: str, before: Cache, after: Cache) -> None:
    """Writes what changed in the cache; drops rows made with other rules. In the caller's transaction."""
    database.execute("delete from history_files where rules <> ?", (rules,))
    gone = [(path,) for path in before.keys() - after.keys()]
    database.executemany("delete from history_files where path = ?", gone)
    for path, (signature, oid, skipped) in after.items():
        if before.get(path) != (signature, oid, skipped):
            database.execute(
                "insert or replace into history_files(path, size, mtime_ns, ctime_ns, inode, oid, skipped, rules)"
                " values(?, ?, ?, ?, ?, ?, ?, ?)",
                (path, *signature, oid or None, skipped or None, rules),
            )
