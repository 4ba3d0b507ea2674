"""Opens databases of other programs to read: nothing in a hostile file can run, and nothing is written into it."""

from __future__ import annotations

import os
from urllib.parse import quote

import apsw

BUSY_MS = 2000


def open_foreign(path: str, *, immutable: bool = False) -> apsw.Connection:
    """Opens a database read-only and checks its schema. Raises `apsw.Error`.

    `immutable` makes SQLite create no file beside it; it is right as long as nobody writes and there is no log.
    """
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOFOLLOW
    connection = apsw.Connection(f"file:{quote(path)}?mode=ro{'&immutable=1' if immutable else ''}", flags=flags)
    try:
        connection.set_busy_timeout(BUSY_MS)
        connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0)
        connection.execute("pragma cell_size_check = on; pragma mmap_size = 0; pragma query_only = on")
        connection.execute("select count(*) from sqlite_schema").fetchall()
    except apsw.Error:
        connection.close()
        raise
    return connection


def has_log(path: str, suffix: str = "-wal") -> bool:
    """Returns whether a log with something in it is beside the database."""
    try:
        return os.stat(path + suffix).st_size > 0
    except OSError:
        return False


def columns_of(connection: apsw.Connection, table: str) -> set[str]:
    """Names the columns of a table; none if there is no such table."""
    return {str(name) for (name,) in connection.execute("select name from pragma_table_info(?)", (table,))}
