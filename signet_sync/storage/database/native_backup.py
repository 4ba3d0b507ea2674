"""Writes and restores backups of native rows: a small SQLite file, written whole, with a checksum in its header.

Automatic backups are beside the database and hold no bytes of seals, which are in files. Backups that a person asks for
hold these, too.

Of a damaged database the rows are copied that it still yields, but none that is visibly not as it was written: SQLite
notices no flipped letter or number. The newest backup has the others.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from typing import Any

import apsw

from signet_sync.errors import DatabaseCorrupt
from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.frontmatter import unpack_seal
from signet_sync.storage.database.connection import Database, columns_of, open_without_log, protect, translate
from signet_sync.storage.database.table import PATTERNS, all_of, placeholders
from signet_sync.storage.database.tables import APPLICATION_ID, TABLES, list_backed_up, native_tables
from signet_sync.storage.durable import CREATE, replacement, sync_descriptor
from signet_sync.text.memory import memory_id

_ABOUT = "about"
_WAIT_MS = 1000
# In SQLite's header: who made the file, and the position of the checksum of all other bytes.
_SEALED = 0x5349534B
_CHECKSUM_AT = 60
_CHUNK = 1 << 20


def fingerprint(database: Database) -> str:
    """Computes a fingerprint that changes with each row of every backup; cheap, as most tables have a `mark`."""
    found = sha256()
    for table in list_backed_up():
        if table.kept == "always":
            sql = f"select {table.mark or all_of(*table.columns)} from {table.name}"
            found.update(f"{table.name}:{database.value(sql)}\n".encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def is_due(database: Database) -> bool:
    """Returns whether native rows still have to be restored: the backups hold more than the database."""
    return bool(database.state("backups", "restore_due"))


def write(database: Database, target: str, about: Mapping[str, str] | None = None, *, whole: bool = False) -> None:
    """Copies the native rows that are worth keeping into a new SQLite file, durably, replacing an old one.

    `about` is what the file says about itself. With `whole` the bytes of seals and live turns are included.
    """
    with replacement(target) as temporary:
        handle = os.open(temporary, CREATE, 0o600)
        try:
            database.execute("attach database ? as kept", (temporary,))
            try:
                database.execute("pragma kept.journal_mode = off")
                database.execute("pragma kept.synchronous = off")
                with database.connection:  # one snapshot of all tables
                    _copy(database, about or {}, whole=whole)
                database.execute(f"pragma kept.application_id = {_SEALED}")
            finally:
                database.execute("detach database kept")
            os.pwrite(handle, _checksum(handle).to_bytes(4, "big"), _CHECKSUM_AT)
            sync_descriptor(handle)
        except apsw.Error as error:
            raise translate(error, temporary) from error
        finally:
            os.close(handle)


def _copy(database: Database, about: Mapping[str, str], *, whole: bool) -> None:
    for table in list_backed_up():
        columns = ", ".join(table.types if whole else table.columns)
        few = "" if whole or table.kept == "always" else " where 0"
        database.execute(f"create table kept.{table.name} as select {columns} from {table.rows}{few}")
    database.execute(f"create table kept.{_ABOUT}(key text, value text)")
    database.executemany(f"insert into kept.{_ABOUT} values(?, ?)", sorted(about.items()))


class OpenBackup:
    """A backup that was opened for reading and is whole; `about` is what it says about itself."""

    def __init__(self, connection: apsw.Connection, source: str) -> None:
        self._connection = connection
        self._source = source
        # Other values than texts were not written by us.
        about = self.rows(_ABOUT, ["key", "value"])
        self.about = {key: value for key, value in about if isinstance(key, str) and isinstance(value, str)}
        # The columns that it has of each table; only a whole one has bytes of seals.
        self.tables: dict[str, list[str]] = {}
        for table in list_backed_up():
            if there := columns_of(connection, table.name):
                self.tables[table.name] = [column for column in table.types if column in there]

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yields the rows of a table. Raises `DatabaseCorrupt`, `DatabaseError` with the backup's path."""
        with _translate_errors(self._source):
            # Equal rows follow each other in the order in which they were copied.
            yield from self._connection.execute(f"select {', '.join(columns)} from {table} order by rowid")

    def counts(self) -> dict[str, int]:
        """Counts the rows by table."""
        with _translate_errors(self._source):
            return {table: self._connection.execute(f"select count(*) from {table}").get for table in self.tables}


@contextmanager
def open_backup(source: str) -> Iterator[OpenBackup]:
    """Opens a backup for reading; nothing is written to it or beside it.

    Raises `DatabaseCorrupt` with its path if it is no backup, or not every byte is as it was written, `DatabaseError`
    if it cannot be opened.
    """
    with _translate_errors(source):
        connection = open_without_log(source)
    try:
        with _translate_errors(source):
            protect(connection, _WAIT_MS)
            _refuse(connection, source)
            kept = OpenBackup(connection, source)
        yield kept
    finally:
        connection.close()


@contextmanager
def _translate_errors(source: str) -> Iterator[None]:
    """Turns SQLite's errors into ours, about the backup."""
    try:
        yield
    except (apsw.NotADBError, apsw.CorruptError, UnicodeDecodeError):
        raise _make_damage_error(source) from None
    except apsw.Error as error:
        raise translate(error, source) from error


def _make_damage_error(source: str) -> DatabaseCorrupt:
    return DatabaseCorrupt(
        "the backup is damaged, or not a backup",
        path=source,
        hint="use an older one: signet-sync backup list",
        code="backup-damaged",
    )


def _refuse(connection: apsw.Connection, source: str) -> None:
    """Raises for files that no signet-sync wrote, and for changed bytes: SQLite does not notice a flipped letter."""
    mark = connection.execute("pragma application_id").get
    if mark not in (_SEALED, 0):
        whose = "a signet-sync" if mark == APPLICATION_ID else "another program's"
        raise DatabaseCorrupt(
            f"this is {whose} database, not a backup",
            path=source,
            hint="signet-sync backup list shows the existing ones",
            code="not-a-backup",
        )
    with open(source, "rb") as file:
        sound = connection.execute("pragma user_version").get % (1 << 32) == _checksum(file.fileno())
    if mark != _SEALED or not sound:
        raise _make_damage_error(source)


def is_backup(head: bytes) -> bool:
    """Returns whether a file that begins with these 72 bytes is a backup, whole or not."""
    return head.startswith(b"SQLite format 3\0") and head[68:72] == _SEALED.to_bytes(4, "big")


def restore(database: Database, source: str) -> dict[str, int]:
    """Restores backed-up rows in a database that lost them; existing rows win. Returns the number of rows by table.

    Raises what `open_backup` raises.
    """
    with open_backup(source) as kept, database.transaction():
        counts = {
            table: add_missing(database, table, columns, kept.rows(table, columns))
            for table, columns in kept.tables.items()
        }
        # If a first try failed, a pass has run since without these rows: the next one derives everything again.
        database.set_state("backups", "restore_due", 0)
        database.execute("delete from derivers")  # what follows from the restored rows is derived again
    return counts


def add_missing(database: Database, table: str, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> int:
    """Adds rows that a table lacks, by its key, or by all columns if these hold no key; returns how many.

    In the caller's transaction.
    """
    given = list(rows)
    if database.value(f"select exists(select 1 from {table})"):
        keys = [row[0] for row in database.execute("select name from pragma_table_info(?) where pk > 0", (table,))]
        known = keys if keys and set(keys) <= set(columns) else list(columns)
        there = f"select exists(select 1 from {table} where {' and '.join(f'{column} is ?' for column in known)})"
        places = [columns.index(column) for column in known]
        given = [row for row in given if not database.value(there, [row[place] for place in places])]
    before = database.connection.total_changes()
    database.executemany(
        f"insert or ignore into {table}({', '.join(columns)}) values({placeholders(len(columns))})", given
    )
    return database.connection.total_changes() - before


def _checksum(handle: int) -> int:
    """Computes the CRC-32 of a file without the four bytes that hold it."""
    crc = place = 0
    while chunk := os.pread(handle, _CHUNK, place):
        if not place:
            chunk = chunk[:_CHECKSUM_AT] + bytes(4) + chunk[_CHECKSUM_AT + 4 :]
        crc = zlib.crc32(chunk, crc)
        place += len(chunk)
    return crc


# ── what a damaged database still yields ──


Row = Mapping[str, Any]

_KINDS: dict[str, type | tuple[type, ...]] = {"integer": int, "real": (float, int), "text": str, "blob": bytes}


def implausible_rows(database: Database) -> list[str]:
    """Lists the native tables that have such a row."""
    found = []
    for table in native_tables():
        if table in _CHECKS or TABLES[table].json_columns:
            columns = list(_kinds(table))
            rows = database.execute(f"select {', '.join(columns)} from {table}")
            if not all(is_plausible(table, columns, row) for row in rows):
                found.append(f"a row of {table} is not as it was written")
    return found


def is_plausible(table: str, columns: Sequence[str], values: Sequence[Any]) -> bool:
    """Returns whether a row may be as it was written: values of their columns' types, an id that fits its words …."""
    declared, kinds = TABLES[table], _kinds(table)
    row = dict(zip(columns, values, strict=True))
    if not all(value is None or isinstance(value, _KINDS[kinds[column]]) for column, value in row.items()):
        return False
    for column, kind in declared.types.items():
        if kind in PATTERNS and column in row and not re.fullmatch(PATTERNS[kind], row[column] or ""):
            return False
    try:
        for column in declared.json_columns:
            json.loads(row.get(column) or "null")  # a flipped byte in it would fail every reader
        return table not in _CHECKS or _CHECKS[table](row)
    except (ValueError, KeyError):
        return False


@cache
def _kinds(table: str) -> dict[str, str]:
    """Maps the columns of a native table to their types, as its statement names them."""
    listed = TABLES[table].ddl[0].partition("(")[2].partition("primary key(")[0]
    return dict(re.findall(r"(\w+) (integer|real|text|blob)\b", listed))


def _seal(row: Row) -> bool:
    """Returns whether it is named like its file, and its bytes, if they are kept, have its hash."""
    raw = unpack_seal(row["packed"])
    fits = not row["packed"] or (raw is not None and sha256(raw).hexdigest() == row["file_sha256"])
    return fits and row["path"].endswith(f"--{row['session_token']}--{row['kind']}.md")


def _tombstone(row: Row) -> bool:
    """Returns whether it reads as a tombstone."""
    listed = {column: row[column] and json.loads(row[column]) for column in ("removed_paths", "session_ids")}
    names = ("agent_id", "session_token", "removed_at", "reason")
    try:
        Tombstone.read({"kind": "tombstone", **{name: row[name] for name in names}, **listed})
    except TypeError:
        return False
    return True


def _memory(row: Row) -> bool:
    """Returns whether the id is that of the words."""
    return bool(row["id"] == memory_id(row["agent_id"], row["type"] or "", row["content"] or ""))


_CHECKS: dict[str, Callable[[Row], bool]] = {
    "seals": _seal,
    "memory_artifact_tombstones": _tombstone,
    "memories": _memory,
}


def salvage(database: Database, source: str) -> int:
    """Copies the readable native rows of a damaged database, which stays as it is; existing rows win.

    Returns how many. Rows that cannot be as they were written are left out. Raises `DatabaseError` for trouble with the
    new database only.
    """
    try:
        damaged = _open_damaged(source)
    except apsw.Error:
        return 0
    before = database.connection.total_changes()
    try:
        with suppress(apsw.Error):
            protect(damaged, 1000)
        with database.transaction():
            for table in native_tables():
                if TABLES[table].salvaged:
                    _save_rows(database, damaged, table)
    finally:
        with suppress(apsw.Error):
            damaged.close()
    return database.connection.total_changes() - before


def _open_damaged(source: str) -> apsw.Connection:
    """Opens the damaged file, without its log if that belongs to another database. Raises SQLite's errors."""
    connection = apsw.Connection(source, flags=apsw.SQLITE_OPEN_READONLY)
    with suppress(apsw.Error):
        if connection.execute("pragma application_id").get == APPLICATION_ID:
            return connection
    connection.close()
    return open_without_log(source)


def _save_rows(database: Database, damaged: apsw.Connection, table: str) -> None:
    try:
        there = columns_of(damaged, table)
    except (apsw.Error, UnicodeDecodeError):
        return
    ours = list(database.execute("select name, pk from pragma_table_info(?)", (table,)))
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
