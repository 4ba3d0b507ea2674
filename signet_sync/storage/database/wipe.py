"""Overwrites what SQLite leaves behind in its pages: bytes of moved rows between the cells of a page.

`secure_delete` overwrites a row where it is deleted. When rows move to another page, to make space or to fill it, their
bytes stay in the old page, in the part that no cell uses; that copy survives the deletion of the row. Nothing reads
those bytes, so a write of zeroes may be interrupted anywhere. Source: the file format, *B-tree Pages*.
"""

from __future__ import annotations

import os
import struct

import apsw

from signet_sync.storage.database.connection import Database, translate

_HEADER = {2: 12, 5: 12, 10: 8, 13: 8}  # bytes of a b-tree page's header, by its first byte
_FIRST = 100  # bytes of the file's own header, before that of page 1


def wipe(database: Database) -> bool:
    """Overwrites what no cell of the database's pages uses; in a transaction that changes something afterwards.

    Its commit makes other connections discard their cached pages, with which they would write the bytes back. False if
    the log is not empty: its pages are newer than those of the file. Raises `DatabaseError`.
    """
    if database.path == ":memory:":
        return True
    try:
        if os.stat(f"{database.path}-wal").st_size:
            return False
    except FileNotFoundError:
        pass
    size: int = database.value("pragma page_size")
    count: int = database.value("pragma page_count")
    try:
        # Through SQLite's own file layer: closing a file that we opened ourselves would drop its locks.
        file = apsw.VFSFile("", database.path, [apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_MAIN_DB, 0])
        try:
            for number in range(count):
                _wipe_page(file, number * size, size)
            file.xSync(apsw.SQLITE_SYNC_NORMAL)
        finally:
            file.xClose()
        # Nor may we write back the pages that we hold ourselves.
        database.execute("pragma shrink_memory")
    except apsw.Error as error:
        raise translate(error, database.path) from error
    return True


def _wipe_page(file: apsw.VFSFile, place: int, size: int) -> None:
    page = file.xRead(size, place)
    head = 0 if place else _FIRST
    header = _HEADER.get(page[head]) if len(page) == size else None
    if header is None:
        return
    cells = int.from_bytes(page[head + 3 : head + 5], "big")
    start = head + header + 2 * cells
    end = int.from_bytes(page[head + 5 : head + 7], "big") or 1 << 16
    if not start < end <= size or page.count(0, start, end) == end - start:
        return
    # A damaged page, whose cells begin before their area does, is left to salvage.
    if min(struct.unpack_from(f">{cells}H", page, head + header), default=end) >= end:
        file.xWrite(bytes(end - start), place + start)
