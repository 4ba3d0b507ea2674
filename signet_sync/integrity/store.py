"""The sealed bytes: how much room they take, and which of them are let go; what a seal tells of a file stays."""

from __future__ import annotations

from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.bodies import keep

# Where the file stands as it was sealed, the bytes are a second copy; of one that changed or went they may be the last.
_SECOND_COPIES = (
    "length(packed) > 0 and exists(select 1 from files f where f.path = seals.path and f.verdict = 'indexed')"
)


def room(database: Database) -> tuple[int, int]:
    """How many seals keep bytes, and how many bytes those are."""
    rows = database.execute("select count(*), coalesce(sum(length(packed)), 0) from seals where length(packed) > 0")
    count, size = next(rows)
    return count, size


def older(database: Database, before_iso: str) -> list[str]:
    """Paths that were sealed before an instant, and whose bytes are a second copy."""
    rows = database.execute(f"select path from seals where sealed_at < ? and {_SECOND_COPIES}", (before_iso,))
    return [path for (path,) in rows]


def beyond(database: Database, limit: int) -> list[str]:
    """Paths whose bytes are a second copy, first sealed first, as many as have to go for the rest to keep the limit."""
    _, size = room(database)
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


def let_go(database: Database, paths: list[str]) -> None:
    """Drops the bytes of seals; empty ones are not taken again, as lost ones are. In the caller's transaction."""
    keep(database, paths)
    database.executemany("update seals set packed = x'' where path = ?", [(path,) for path in paths])
