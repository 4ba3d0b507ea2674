"""Copies the native rows that a damaged database still yields; the newest backup has the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import apsw

from signet_sync.storage.database.connection import Database, protect, without_log
from signet_sync.storage.database.row_checks import is_plausible
from signet_sync.storage.database.table import placeholders
from signet_sync.storage.database.tables import APPLICATION_ID, TABLES, native_tables

_COLUMNS = "select name, pk from pragma_table_info(?)"


def salvage(database: Database, source: str) -> int:
    """Copies the readable native rows of a damaged database, which stays as it is; existing rows win.

    Returns how many. Rows that cannot be as they were written are left out. Raises `DatabaseError` for trouble with the
    new database only.
    """
    try:
        damaged = _opened(source)
    except apsw.Error:
        return 0
    before = database.connection.total_changes()
    try:
        with suppress(apsw.Error):
            protect(damaged, 1000)
        with database.transaction():
            for table in native_tables():
                if TABLES[table].salvaged:
                    _copy(database, damaged, table)
    finally:
        with suppress(apsw.Error):
            damaged.close()
    return database.connection.total_changes() - before


def _opened(source: str) -> apsw.Connection:
    """Opens the damaged file, without its log if that belongs to another database. Raises SQLite's errors."""
    connection = apsw.Connection(source, flags=apsw.SQLITE_OPEN_READONLY)
    with suppress(apsw.Error):
        if connection.execute("pragma application_id").get == APPLICATION_ID:
            return connection
    connection.close()
    return without_log(source)


def _copy(database: Database, damaged: apsw.Connection, table: str) -> None:
    try:
        there = {name for name, _ in damaged.execute(_COLUMNS, (table,))}
    except (apsw.Error, UnicodeDecodeError):
        return
    ours = list(database.execute(_COLUMNS, (table,)))
    columns = [name for name, _ in ours if name in there]
    key = ["rowid"]
    if TABLES[table].ddl[0].endswith("without rowid"):
        key = [name for _, name in sorted((place, name) for name, place in ours if place)]
    if columns:
        given = (row for row in _readable(damaged, table, columns, key) if is_plausible(table, columns, row))
        names = ", ".join(columns)
        into = f"insert or ignore into {table}({names}) values({placeholders(len(columns))})"
        database.connection.executemany(into, given)


def _readable(
    damaged: apsw.Connection, table: str, columns: Sequence[str], key: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """Yields rows up to the first damage from one end, then from the other."""
    for direction in ("", " desc"):
        order = ", ".join(f"{name}{direction}" for name in key)
        try:
            yield from damaged.execute(f"select {', '.join(columns)} from {table} order by {order}")
        except (apsw.Error, UnicodeDecodeError):
            continue
        return
