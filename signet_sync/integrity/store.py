"""Measures and deletes the stored bytes of seals; the other data of a seal stays."""

from __future__ import annotations

from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.bodies import keep

# If the file is still as it was sealed, the bytes are a second copy; if it changed or is gone, they may be the last.
_SECOND_COPIES = (
    "length(packed) > 0 and exists(select 1 from files f where f.path = seals.path and f.verdict = 'indexed')"
)


def bytes_used(database: Database) -> tuple[int, int]:
    """Returns how many seals hold bytes, and the number of these bytes."""
    rows = database.execute("select count(*), coalesce(sum(length(packed)), 0) from seals where length(packed) > 0")
    count, size = next(rows)
    return count, size


def older(database: Database, before_iso: str) -> list[str]:
    """Returns paths that were sealed before an instant and whose bytes are a second copy."""
    rows = database.execute(f"select path from seals where sealed_at < ? and {_SECOND_COPIES}", (before_iso,))
    return [path for (path,) in rows]


def beyond(database: Database, limit: int) -> list[str]:
    """Returns paths whose bytes are a second copy, first sealed first, until the rest is within the limit."""
    _, size = bytes_used(database)
    found: list[str] = []
    if size <= limit:
        return found
    for path, length in database.execute(
        f"select path, length(packed) from seals where {_SECOND_COPIES} order by sealed_at, path"
    ):
        if size <= limit:
            break
        found.append(path)
        size -= length
    return found


def drop_bytes(database: Database, paths: list[str]) -> None:
    """Deletes the bytes of seals; unlike lost bytes, empty ones are not stored again. In the caller's transaction."""
    keep(database, paths)
    database.executemany("update seals set packed = x'' where path = ?", [(path,) for path in paths])
