"""Opens the index for a hook: read-only, with little patience; imports SQLite only if there is an index."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from signet_sync.errors import DatabaseError

TYPE_CHECKING = False  # same as in `typing`, without importing it
if TYPE_CHECKING:
    from signet_sync.storage.database.connection import Database

_WAIT_MS = 500


@contextmanager
def readable_index(path: str) -> Iterator[Database | None]:
    """Opens the index read-only; None if it cannot be read, or a removal is unfinished. Errors end the block."""
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
            yield None if half_enforced(database) else database
        finally:
            database.connection.close()
