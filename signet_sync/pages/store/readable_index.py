"""Opens the index for a hook: read-only, with little patience; imports SQLite only if there is an index."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from signet_sync.errors import DatabaseError

if TYPE_CHECKING:
    from signet_sync.storage.database.connection import Database

_WAIT_MS = 500


class RemovalUnfinished(Exception):
    """A removal has begun and not ended: neither the index nor a page may be shown."""


@contextmanager
def readable_index(path: str, root: str) -> Iterator[Database | None]:
    """Opens the index of a workspace read-only; None if it cannot be read. Errors end the block.

    Raises `RemovalUnfinished`.
    """
    if not os.path.exists(path):
        yield None
        return
    import apsw  # as the module says

    from signet_sync.storage.database.connection import Database  # as above
    from signet_sync.sync.store.counts import half_enforced  # as above

    try:
        database = Database(path, readonly=True, wait_ms=_WAIT_MS)
    except (FileNotFoundError, DatabaseError):
        yield None
        return
    with suppress(apsw.Error, DatabaseError):
        try:
            if half_enforced(database) or _has_new_tombstones(database, root):
                raise RemovalUnfinished
            yield database
        finally:
            database.connection.close()


def _has_new_tombstones(database: Database, root: str) -> bool:
    """Returns whether a tombstone lies in the workspace that no pass has read yet."""
    from signet_sync.formats.filename import tombstone_name  # only where there is an index
    from signet_sync.formats.paths import TOMBSTONES  # as above

    try:
        names = [name for name in os.listdir(os.path.join(root, TOMBSTONES)) if tombstone_name(name)]
    except OSError:
        return False
    if not names:
        return False
    judged = database.execute("select path from files where path between ? and ?", (f"{TOMBSTONES}/", f"{TOMBSTONES}0"))
    return not {f"{TOMBSTONES}/{name}" for name in names} <= {path for (path,) in judged}
