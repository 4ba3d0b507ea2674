"""Opens databases of other programs to read: nothing in a hostile file can run, and nothing is written into it."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import apsw

BUSY_MS = 2000
_STEPS = 10_000  # of SQLite's virtual machine, between two looks at the clock
_BESIDE = "-wal", "-shm", "-journal"
_VERSION_AT, _WITH_LOG = 18, b"\x02"  # in the file's first bytes


@contextmanager
def reading(path: str, *, seconds: float) -> Iterator[apsw.Connection]:
    """Opens a database in the workspace for one consistent read of at most some seconds. Raises `apsw.Error`.

    One that would be written through a log, and has none, is read as it is: to lock it, SQLite would create the log.
    """
    try:
        # SQLite refuses links only in the path of the database itself, and writes its index where that link leads.
        odd = [beside for beside in _BESIDE if not _is_file_or_gone(path + beside)]
        idle = _is_idle(path)
    except OSError as error:
        raise apsw.CantOpenError(error.strerror) from error
    if odd:
        raise apsw.CantOpenError(f"there is no file in the place of its {odd[0]}")
    connection = open_foreign(path, immutable=idle)
    try:
        end = time.monotonic() + seconds
        connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
        connection.execute("begin")
        yield connection
    finally:
        connection.close()
    if idle and not _is_idle(path):
        raise apsw.BusyError("it was written in the meantime")


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


def _is_idle(path: str) -> bool:
    """Returns whether a database is written through a log, and all of its content is in its file."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        version = file.read(_VERSION_AT + 1)[_VERSION_AT:]
    return version == _WITH_LOG and not (has_log(path) or has_log(path, "-journal"))


def _is_file_or_gone(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return True
