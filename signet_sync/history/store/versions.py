"""Caches what the history read of each file, so that only changed files are read again."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from signet_sync.formats.snapshot import Signature
from signet_sync.storage.database.connection import Database

# A file's signature when it was read, the hex id of its content, and why it was skipped (one of these is empty).
CachedFile = tuple[Signature, str, str]


def cached_files(database: Database, rules: str) -> dict[str, CachedFile]:
    """Returns the cache by path if it was made with these rules, else nothing."""
    rows = database.execute(
        "select path, size, mtime_ns, ctime_ns, inode, oid, skipped from history_files where rules = ?", (rules,)
    )
    return {path: (Signature(*signature), oid or "", skipped or "") for path, *signature, oid, skipped in rows}


def update_cache(database: Database, rules: str, learnt: Mapping[str, CachedFile], forgotten: Collection[str]) -> None:
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
    """Whether a path is valid text; one whose bytes are not UTF-8 is read every time."""
    return path.isascii() or not any("\ud800" <= character <= "\udfff" for character in path)
