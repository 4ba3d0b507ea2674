"""What the history took of each file when it last looked, so that only what has moved since is read again."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from signet_sync.formats.snapshot import Signature
from signet_sync.storage.database.connection import Database

# A file's signature when it was read, and of its content the hex id, or else why it was skipped.
Taken = tuple[Signature, str, str]


def taken(database: Database, rules: str) -> dict[str, Taken]:
    """What is known by path, as long as it was learnt by these rules; else nothing is."""
    rows = database.execute(
        "select path, size, mtime_ns, ctime_ns, inode, oid, skipped from history_files where rules = ?", (rules,)
    )
    return {path: (Signature(*signature), oid or "", skipped or "") for path, *signature, oid, skipped in rows}


def keep(database: Database, rules: str, learnt: Mapping[str, Taken], forgotten: Collection[str]) -> None:
    """Brings what is known up to date; by other rules nothing older stays. In the caller's transaction."""
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
    """Whether a path is text; one whose bytes are not UTF-8 is read every time."""
    return path.isascii() or not any("\ud800" <= character <= "\udfff" for character in path)
