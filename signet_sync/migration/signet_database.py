"""Reads Signet's database, of any version, beside a running Signet: it is asked which tables and columns it has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from signet_sync.capture.stores.files import require_own_file
from signet_sync.errors import HarnessError, UsageError
from signet_sync.migration.signet_rows import COLUMNS, Row
from signet_sync.storage.database.foreign import columns_of, has_log, open_foreign

# A longer value is not read: nothing that is brought may be as long.
LONGEST = 64 * 1024 * 1024  # bytes
PLACES = ("memory/memories.db", "memories.db")


def find_database(root: str, given: str | None) -> str:
    """Returns the path of Signet's database: of the workspace, or of the file or folder that a person gives."""
    where = os.path.realpath(os.path.expanduser(given)) if given is not None else root
    if given is not None and os.path.isfile(where):
        return where
    for place in PLACES:
        path = os.path.join(where, place)
        if os.path.lexists(path):
            return path
    raise UsageError(
        "there is no database of Signet" if given is None or os.path.isdir(where) else "there is no such file",
        path=where,
        hint="give its place: signet-sync migrate signet --from PATH (a memories.db, or the folder of a workspace)",
        code="no-database",
    )


class SignetDatabase:
    """An open database of Signet. Values come as text, whatever their column holds."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
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
        columns = COLUMNS[table]
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
def opened(path: str) -> Iterator[SignetDatabase]:
    """Opens the database in one read transaction, after a check of the tables that are read.

    Without a log the file is read as it is, because SQLite would create files beside it; if it changes meanwhile, that
    is an error. Raises `HarnessError`.
    """
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    try:
        before = os.lstat(path)
        require_own_file(path, before)
    except (OSError, ValueError) as error:
        raise HarnessError(f"Signet's database cannot be read: {error}", path=path, hint="check the path") from error
    immutable = not has_log(path) and not has_log(path, "-journal")
    try:
        connection = open_foreign(path, immutable=immutable)
        try:
            connection.execute("begin")
            database = SignetDatabase(connection)
            _require_signet(connection, database, path)
            yield database
        finally:
            connection.close()
    except apsw.Error as error:
        raise _translated(error, path) from error
    after = os.lstat(path)
    if immutable and (has_log(path) or (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size)):
        raise HarnessError(
            "Signet wrote into its database while it was read",
            path=path,
            hint="run the same command again; what was brought stays, and nothing comes twice",
            code="database-moved",
        )


def _require_signet(connection: apsw.Connection, database: SignetDatabase, path: str) -> None:
    """Refuses another program's database, an unknown version and a damaged file, before anything is brought."""
    if not columns_of(connection, "memories") >= {"id", "content"}:
        raise HarnessError(
            "it has no table `memories` with `id` and `content`: not Signet's, or of an unknown version",
            path=path,
            hint="name Signet's own memories.db; if it is, upgrade signet-sync",
            code="database-unknown",
        )
    for table in (table for table in database.tables if table in COLUMNS):
        found = connection.execute(f"pragma quick_check({_quoted(table)})").get
        if found != "ok":
            raise _damaged(path)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _damaged(path: str) -> HarnessError:
    return HarnessError(
        "it is not an SQLite database, or it is damaged",
        path=path,
        hint="restore it from a backup of Signet, or give the backup with --from; nothing was brought",
        code="database-damaged",
    )


def _translated(error: apsw.Error, path: str) -> HarnessError:
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        hint = "stop Signet, or try again when it is idle; nothing was brought"
        return HarnessError("Signet's database is locked", path=path, hint=hint, code="database-locked")
    if isinstance(error, (apsw.NotADBError, apsw.CorruptError)):
        return _damaged(path)
    hint = "check its permissions; if a Signet was killed, start and stop it once"
    return HarnessError(f"Signet's database cannot be read: {error}", path=path, hint=hint)
