"""Keeps full text in few segments: FTS5 writes a segment with every change, and merges them on request.

By itself it would merge inside a commit, even the largest segments of an index. The options of its tables (`derived`)
let a commit merge only if there are far too many.
"""

from __future__ import annotations

import apsw

from signet_sync.errors import DatabaseError
from signet_sync.storage.database.connection import BUSY_MS, Database
from signet_sync.storage.database.tables import full_text

STEP = 64
"""Pages of full text that one step writes: some milliseconds."""

_BULK_STEP = 2_000  # the same after many files at once, which took far longer


def step(database: Database, pages: int = STEP) -> bool:
    """Merges some segments, or a part of them, in its own transaction; False if there is nothing to merge.

    Also False if another program is writing, which is not waited for, and if the disk is full: merging is never urgent.
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


def merge_all(database: Database) -> None:
    """Merges until nothing is left: a search costs as much for each segment as for hundreds of artifacts in one."""
    while step(database, _BULK_STEP):
        pass


def _merge(database: Database, table: str, pages: int) -> bool:
    before = database.connection.total_changes()
    database.execute(f"insert into {table}({table}, rank) values('merge', ?)", (pages,))
    # Writing fewer than two rows means that nothing was merged: https://sqlite.org/fts5.html#the_merge_command
    return database.connection.total_changes() - before >= 2
