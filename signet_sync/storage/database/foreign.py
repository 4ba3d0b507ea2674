"""Opens databases of other programs to read: nothing in a hostile file can run, and nothing is written into it."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import quote

import apsw

from signet_sync.errors import HarnessError
from signet_sync.storage.database.connection import columns_of, log_size, protect

BUSY_MS = 2000
LONGEST = 64 * 1024 * 1024  # bytes of a value that is read
_STEPS = 10_000  # of SQLite's virtual machine, between two looks at the clock
_BESIDE = "-wal", "-shm", "-journal"
_VERSION_AT, _WITH_LOG = 18, b"\x02"  # in the file's first bytes


class ForeignDatabase:
    """An open database of another program: the columns that are read, by table, as text whatever they hold."""

    def __init__(self, connection: apsw.Connection, read: Mapping[str, tuple[str, ...]]) -> None:
        self._connection = connection
        self._read = read
        found = connection.execute("select name, type from pragma_table_list where schema = 'main'")
        listed = [(str(name), kind) for name, kind in found]
        virtual = [name for name, kind in listed if kind == "virtual"]
        self.tables: tuple[str, ...] = tuple(
            sorted(
                name
                for name, kind in listed
                if kind == "table"
                and not name.startswith("sqlite_")
                and not any(name.startswith(f"{one}_") for one in virtual)
            )
        )

    def columns(self, table: str) -> set[str]:
        """Names the columns of a table; none if there is no such table."""
        return columns_of(self._connection, table) if table in self.tables else set()

    def is_sound(self, table: str) -> bool:
        """Returns whether SQLite finds no damage in a table."""
        return bool(self._connection.execute(f"pragma quick_check({_quote_name(table)})").get == "ok")

    def count(self, table: str) -> int:
        """Counts the rows of a table; 0 if there is no such table."""
        if table not in self.tables:
            return 0
        number: int = self._connection.execute(f"select count(*) from {_quote_name(table)}").get
        return number

    def rows(
        self, table: str, longest: int = LONGEST, *, named: str | None = None
    ) -> Iterator[Mapping[str, str | None]]:
        """Yields the rows of a table that is read, or those with an `id`, one by one.

        Columns that this version lacks and too long values are None; then `bytes` says how long a value is.
        """
        columns, present = self._read[table], self.columns(table)
        known = [column for column in columns if column in present]
        if not known:
            return
        parts = ", ".join(
            f"case when octet_length({name}) <= {longest} then cast({name} as blob) end, octet_length({name})"
            for name in map(_quote_name, known)
        )
        absent: dict[str, str | None] = dict.fromkeys(columns)
        where = "" if named is None else " where id = ?"
        for values in self._connection.execute(
            f"select {parts} from {_quote_name(table)}{where}", [named] * bool(where)
        ):
            row = absent.copy()
            for name, value, length in zip(known, values[::2], values[1::2], strict=True):
                row[name] = None if value is None else value.decode("utf-8", "replace")
                if value is None and length is not None:
                    row["bytes"] = str(length)
            yield row


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def open_to_read(
    path: str, program: str, read: Mapping[str, tuple[str, ...]], *, seconds: float | None = None
) -> Iterator[ForeignDatabase]:
    """Opens a program's database for one consistent read, of at most some seconds. Raises `HarnessError`.

    One that would be written through a log, and has none, is read as it is: to lock it, SQLite would create the log. If
    it changes meanwhile, that is an error.
    """
    try:
        # SQLite refuses links only in the path of the database itself, and writes its index where that link leads.
        odd = [beside for beside in _BESIDE if not _is_file_or_gone(path + beside)]
        before = _idle_state(path)
    except OSError as error:
        raise _unreadable(path, program, error.strerror or str(error)) from error
    if odd:
        raise _unreadable(path, program, f"there is no file in the place of its {odd[0]}")
    try:
        connection = open_foreign(path, immutable=before is not None)
        try:
            if seconds is not None:
                end = time.monotonic() + seconds
                connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
            connection.execute("begin")
            yield ForeignDatabase(connection, read)
        finally:
            connection.close()
    except apsw.Error as error:
        raise _translate_error(error, path, program) from error
    if before is not None and _idle_state(path) != before:
        hint = f"run the same command again when {program} is idle; what was done stays, and nothing comes twice"
        what = f"{program} wrote into its database while it was read"
        raise HarnessError(what, path=path, hint=hint, code="database-moved")


def make_damage_error(path: str, program: str) -> HarnessError:
    """Returns the error of a file that is no sound database."""
    hint = f"restore it from a backup of {program}, or start {program} once"
    what = f"{program}'s database is no SQLite database, or damaged"
    return HarnessError(what, path=path, hint=hint, code="database-damaged")


def _unreadable(path: str, program: str, why: str) -> HarnessError:
    hint = f"check path and permissions; if {program} was killed, start and stop it once"
    return HarnessError(f"{program}'s database cannot be read: {why}", path=path, hint=hint)


def _translate_error(error: apsw.Error, path: str, program: str) -> HarnessError:
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        hint = f"stop {program}, or try again when it is idle"
        return HarnessError(f"{program}'s database is locked", path=path, hint=hint, code="database-locked")
    if isinstance(error, (apsw.NotADBError, apsw.CorruptError)):
        return make_damage_error(path, program)
    late = isinstance(error, apsw.InterruptError)
    return _unreadable(path, program, "it takes too long" if late else str(error) or type(error).__name__)


def open_foreign(path: str, *, immutable: bool = False) -> apsw.Connection:
    """Opens a database read-only; what it holds is looked at by the first read. Raises `apsw.Error`.

    `immutable` makes SQLite create no file beside it; it is right as long as nobody writes and there is no log.
    """
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOFOLLOW
    connection = apsw.Connection(f"file:{quote(path)}?mode=ro{'&immutable=1' if immutable else ''}", flags=flags)
    try:
        protect(connection, BUSY_MS)
        connection.execute("pragma query_only = on")
    except apsw.Error:
        connection.close()
        raise
    return connection


def _idle_state(path: str) -> tuple[int, int] | None:
    """Returns time and size of a database that is written through a log and has all in its file; None for any other."""
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        status = os.fstat(file.fileno())
        version = file.read(_VERSION_AT + 1)[_VERSION_AT:] if stat.S_ISREG(status.st_mode) else b""
    if version != _WITH_LOG or log_size(path) or log_size(path, "-journal"):
        return None
    return status.st_mtime_ns, status.st_size


def _is_file_or_gone(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return True
