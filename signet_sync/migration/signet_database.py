"""Reads databases of Signet and others, of any version, beside the running program: each is asked what it has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import apsw

from signet_sync.capture.stores.files import require_own_file
from signet_sync.errors import HarnessError, UsageError
from signet_sync.formats.paths import SIGNET_DATABASES
from signet_sync.migration.signet_rows import COLUMNS, Row
from signet_sync.storage.database.foreign import columns_of, has_log, open_foreign

# A longer value is not read: nothing that is brought may be as long.
LONGEST = 64 * 1024 * 1024  # bytes


class DatabaseFormat(NamedTuple):
    """What is read of a program's database, and the table and columns by which it is recognised."""

    program: str
    file: str
    columns: Mapping[str, tuple[str, ...]]
    table: str
    needed: tuple[str, ...]


SIGNET = DatabaseFormat("Signet", "memories.db", COLUMNS, "memories", ("id", "content"))


def find_database(root: str, given: str | None) -> str:
    """Returns the path of Signet's database: of the workspace, or of the file or folder that a person gives."""
    where = os.path.realpath(os.path.expanduser(given)) if given is not None else root
    if given is not None and os.path.isfile(where):
        return where
    for place in SIGNET_DATABASES:
        path = os.path.join(where, place)
        if os.path.lexists(path):
            return path
    raise UsageError(
        "there is no database of Signet" if given is None or os.path.isdir(where) else "there is no such file",
        path=where,
        hint="give its place: signet-sync migrate signet --from PATH (a memories.db, or the folder of a workspace)",
        code="no-database",
    )


class ForeignDatabase:
    """An open database of another program. Values come as text, whatever their column holds."""

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

    def count(self, table: str) -> int:
        """Counts the rows of a table; 0 if there is no such table."""
        if table not in self.tables:
            return 0
        number: int = self._connection.execute(f"select count(*) from {_quoted(table)}").get
        return number

    def rows(self, table: str) -> Iterator[Row]:
        """Yields the rows of a table that is read; None for columns that this version lacks, and for too long values.

        Then `bytes` says how long a value is.
        """
        columns = self._read[table]
        present = columns_of(self._connection, table) if table in self.tables else set()
        known = [column for column in columns if column in present]
        if not known:
            return
        parts = ", ".join(
            f"case when octet_length({name}) <= {LONGEST} then cast({name} as blob) end, octet_length({name})"
            for name in map(_quoted, known)
        )
        absent: dict[str, str | None] = dict.fromkeys(columns)
        for values in self._connection.execute(f"select {parts} from {_quoted(table)}"):
            row = absent.copy()
            for name, value, length in zip(known, values[::2], values[1::2], strict=True):
                row[name] = None if value is None else value.decode("utf-8", "replace")
                if value is None and length is not None:
                    row["bytes"] = str(length)
            yield row


@contextmanager
def opened(path: str, written: DatabaseFormat = SIGNET) -> Iterator[ForeignDatabase]:
    """Opens the database in one read transaction, after a check of the tables that are read.

    Without a log the file is read as it is, because SQLite would create files beside it; if it changes meanwhile, that
    is an error. Raises `HarnessError`.
    """
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    try:
        before = os.lstat(path)
        require_own_file(path, before)
    except (OSError, ValueError) as error:
        what = f"{written.program}'s database cannot be read: {error}"
        raise HarnessError(what, path=path, hint="check the path") from error
    immutable = not has_log(path) and not has_log(path, "-journal")
    try:
        connection = open_foreign(path, immutable=immutable)
        try:
            connection.execute("begin")
            database = ForeignDatabase(connection, written.columns)
            _require_format(connection, database, path, written)
            yield database
        finally:
            connection.close()
    except apsw.Error as error:
        raise _translated(error, path, written.program) from error
    after = os.lstat(path)
    if immutable and (has_log(path) or (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size)):
        raise HarnessError(
            f"{written.program} wrote into its database while it was read",
            path=path,
            hint="run the same command again; what was brought stays, and nothing comes twice",
            code="database-moved",
        )


def _require_format(connection: apsw.Connection, database: ForeignDatabase, path: str, written: DatabaseFormat) -> None:
    """Refuses another program's database, an unknown version and a damaged file, before anything is brought."""
    if not columns_of(connection, written.table) >= {*written.needed}:
        needed = " and ".join(f"`{name}`" for name in written.needed)
        raise HarnessError(
            f"it has no table `{written.table}` with {needed}: not {written.program}'s, or of an unknown version",
            path=path,
            hint=f"name {written.program}'s own {written.file}; if it is, upgrade signet-sync",
            code="database-unknown",
        )
    for table in (table for table in database.tables if table in written.columns):
        found = connection.execute(f"pragma quick_check({_quoted(table)})").get
        if found != "ok":
            raise _damaged(path, written.program)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _damaged(path: str, program: str) -> HarnessError:
    return HarnessError(
        "it is not an SQLite database, or it is damaged",
        path=path,
        hint=f"restore it from a backup of {program}, or name the backup; nothing was brought",
        code="database-damaged",
    )


def _translated(error: apsw.Error, path: str, program: str) -> HarnessError:
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        hint = f"stop {program}, or try again when it is idle; nothing was brought"
        return HarnessError(f"{program}'s database is locked", path=path, hint=hint, code="database-locked")
    if isinstance(error, (apsw.NotADBError, apsw.CorruptError)):
        return _damaged(path, program)
    hint = f"check its permissions; if {program} was killed, start and stop it once"
    return HarnessError(f"{program}'s database cannot be read: {error}", path=path, hint=hint)
