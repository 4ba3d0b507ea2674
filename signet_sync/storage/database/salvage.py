"""Salvages the native rows of a damaged database, each checked before it is taken over."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple

import apsw

from signet_sync.formats.artifact import validate_tombstone
from signet_sync.formats.seal import unpack
from signet_sync.storage.database.connection import Database, protect, without_log
from signet_sync.storage.database.table import PATTERNS, placeholders
from signet_sync.storage.database.tables import APPLICATION_ID, TABLES, native_tables
from signet_sync.text.memory import memory_id

_WAIT_MS = 1000
_COLUMNS = "select name, lower(type), pk from pragma_table_info(?)"
_KINDS: dict[str, tuple[type, ...]] = {"integer": (int,), "real": (float, int), "text": (str,), "blob": (bytes,)}

Row = Mapping[str, Any]


class _Column(NamedTuple):
    name: str
    kind: str
    key: int  # its position in the primary key, 0 if not part of it


def salvage(database: Database, source: str) -> dict[str, int]:
    """Takes over the native rows that a damaged database still yields; existing rows win. Returns how many by table.

    The damaged file is opened for reading and stays as it is. Rows that cannot be as they were written are left to the
    backup. Raises `DatabaseError` for trouble with the new database only.
    """
    try:
        damaged = _opened(source)
    except apsw.Error:
        return {}
    counts: dict[str, int] = {}
    try:
        with suppress(apsw.Error):
            protect(damaged, _WAIT_MS)
        with database.transaction():
            before = _counts(database)
            for table in before:
                _take(database, damaged, table)
            database.take_keys(_keys(damaged), before)
            counts = {table: count - before[table] for table, count in _counts(database).items()}
    finally:
        with suppress(apsw.Error):
            damaged.close()
    return counts


def _counts(database: Database) -> dict[str, int]:
    """Counts the rows by table, of the tables that are salvaged."""
    names = [name for name in native_tables() if TABLES[name].salvaged]
    return {name: database.value(f"select count(*) from {name}") for name in names}


def _opened(source: str) -> apsw.Connection:
    """Opens the damaged file, without its log if that belongs to another database. Raises SQLite's errors."""
    connection = apsw.Connection(source, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        if connection.execute("pragma application_id").get == APPLICATION_ID:
            return connection
    except apsw.Error:
        pass
    connection.close()
    return without_log(source)


def implausible_rows(database: Database) -> list[str]:
    """Lists native rows that are visibly not as they were written; no check of SQLite notices that."""
    found = []
    for table in native_tables():
        if not (table in _CHECKS or TABLES[table].json_columns):
            continue
        columns = [_Column(*row) for row in database.execute(_COLUMNS, (table,))]
        names = ", ".join(column.name for column in columns)
        for values in database.execute(f"select {names} from {table}"):
            row = dict(zip((column.name for column in columns), values, strict=True))
            if not is_plausible(table, row):
                found.append(f"a row of {table} is not as it was written")
                break
    return found


def _take(database: Database, damaged: apsw.Connection, table: str) -> None:
    columns = _shared_columns(database, damaged, table)
    names = ", ".join(column.name for column in columns)
    if names:
        # A row that a column's constraint rejects is left out, too.
        database.connection.executemany(
            f"insert or ignore into {table}({names}) values({placeholders(len(columns))})",
            _believable(damaged, table, columns),
        )


def _keys(damaged: apsw.Connection) -> dict[str, str]:
    """Reads the keys and values of a database of an older schema."""
    columns = [_Column("key", "text", 1), _Column("value", "text", 0)]
    if not _columns(damaged, "meta").issuperset({"key", "value"}):
        return {}
    return {key: value for key, value in _believable(damaged, "meta", columns) if key and value is not None}


def _shared_columns(database: Database, damaged: apsw.Connection, table: str) -> list[_Column]:
    """Lists our columns of a table that the damaged database has, too; it may be of an older version."""
    there = _columns(damaged, table)
    return [_Column(*row) for row in database.execute(_COLUMNS, (table,)) if row[0] in there]


def _columns(damaged: apsw.Connection, table: str) -> set[str]:
    try:
        # A view of that name could yield anything.
        if damaged.execute("select type from sqlite_schema where name = ?", (table,)).get != "table":
            return set()
        return {name for name, _, _ in damaged.execute(_COLUMNS, (table,))}
    except (apsw.Error, UnicodeDecodeError):
        return set()


def _believable(damaged: apsw.Connection, table: str, columns: list[_Column]) -> Iterator[list[Any]]:
    kinds = [_KINDS[column.kind] for column in columns]
    for raw in _readable(damaged, table, columns):
        try:
            row = [
                value.decode() if column.kind == "text" and isinstance(value, bytes) else value
                for value, column in zip(raw, columns, strict=True)
            ]
        except UnicodeDecodeError:
            continue
        named = {column.name: value for column, value in zip(columns, row, strict=True)}
        typed = all(value is None or isinstance(value, kind) for value, kind in zip(row, kinds, strict=True))
        if typed and is_plausible(table, named):
            yield row


def _readable(damaged: apsw.Connection, table: str, columns: list[_Column]) -> Iterator[tuple[Any, ...]]:
    """Yields rows up to the first damage from one end, then from the other; those in between may come twice."""
    # Text is read as bytes, because it may not be UTF-8: in a damaged row also that of a column of numbers.
    given = ", ".join(f"iif(typeof({c.name}) = 'text', cast({c.name} as blob), {c.name})" for c in columns)
    keys = sorted((column.key, column.name) for column in columns if column.key)
    for direction in ("asc", "desc"):
        order = ", ".join(f"{name} {direction}" for _, name in keys)
        # In a table with a rowid the key is another tree, which may be damaged by itself.
        for by in (f"rowid {direction}", order):
            try:
                yield from damaged.execute(f"select {given} from {table} order by {by}")
            except apsw.SQLError:
                continue
            except apsw.Error:
                break
            if direction == "asc":
                return
            break


def is_plausible(table: str, row: Row) -> bool:
    """Returns whether a row may be as it was written: values of their columns' types, an id that fits its words …."""
    if table not in TABLES:
        return True
    for column, kind in TABLES[table].types.items():
        pattern, value = PATTERNS.get(kind), row.get(column)
        if pattern is not None and column in row and not (isinstance(value, str) and re.fullmatch(pattern, value)):
            return False
    try:
        for column in TABLES[table].json_columns:
            if row.get(column) is not None:
                json.loads(row[column])  # a flipped byte in it would fail every reader
    except ValueError:
        return False
    check = _CHECKS.get(table)
    return check is None or check(row)


# ── checks of single tables ──


def _seal(row: Row) -> bool:
    """Returns whether it is named like its file, and its bytes, if they are kept, have its hash."""
    if not row["path"].endswith(f"--{row['session_token']}--{row['kind']}.md"):
        return False
    raw = unpack(row["packed"])
    return not row["packed"] or (raw is not None and sha256(raw).hexdigest() == row["file_sha256"])


def _tombstone(row: Row) -> bool:
    """Returns whether it reads as a tombstone."""
    try:
        listed = {column: row[column] and json.loads(row[column]) for column in ("removed_paths", "session_ids")}
        names = ("agent_id", "session_token", "removed_at", "reason")
        validate_tombstone({"kind": "tombstone", **{name: row[name] for name in names}, **listed})
    except (ValueError, TypeError):
        return False
    return True


def _memory(row: Row) -> bool:
    """Returns whether the id is that of the words."""
    if None in (row["type"], row["content"]):
        return False
    return bool(row["id"] == memory_id(row["agent_id"], row["type"], row["content"]))


_CHECKS: dict[str, Callable[[Row], bool]] = {
    "seals": _seal,
    "memory_artifact_tombstones": _tombstone,
    "memories": _memory,
}
