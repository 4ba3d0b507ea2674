"""Full text in few pieces: FTS5 writes a piece (segment) with every change, and merges them when it is told to.

By itself it would merge inside of somebody's commit, the largest piece of an index among them. Its options
(`schema.DERIVED_DDL`) leave that to pieces which nobody came to merge.
"""

from __future__ import annotations

import apsw

from signet_sync.errors import DatabaseError
from signet_sync.storage.database.connection import BUSY_MS, Database
from signet_sync.storage.database.tables import full_text

STEP = 64
"""Pages of full text that one step writes: some milliseconds."""

BULK_STEP = 2_000
"""The same after many files at once, which took far longer."""


def step(database: Database, pages: int = STEP) -> bool:
    """Merges some pieces, or a part of them, in a transaction of its own; False where there is nothing to merge.

    False, too, where another program writes, which is not waited for, and where the disk is full: nothing hangs on it.
    """
    database.connection.set_busy_timeout(0)
    try:
        with database.transaction():
            return any(_merge(database, table, pages) for table in full_text())
    except DatabaseError as error:
        if isinstance(error.__cause__, (apsw.BusyError, apsw.FullError)):
            return False
        raise
    finally:
        database.connection.set_busy_timeout(BUSY_MS)


def _merge(database: Database, table: str, pages: int) -> bool:
    before = database.connection.total_changes()
    database.execute(f"insert into {table}({table}, rank) values('merge', ?)", (pages,))
    # What writes fewer rows than two has merged nothing: https://sqlite.org/fts5.html#the_merge_command
    return database.connection.total_changes() - before >= 2
