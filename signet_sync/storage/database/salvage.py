"""Copies the native rows that a damaged database still yields, but none that is visibly not as it was written.

SQLite notices no flipped letter or number. The newest backup has the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from typing import Any

import apsw

from signet_sync.formats.artifact import validate_tombstone
from signet_sync.formats.frontmatter import unpack_seal
from signet_sync.storage.database.connection import Database, open_without_log, protect
from signet_sync.storage.database.table import PATTERNS, placeholders
from signet_sync.storage.database.tables import APPLICATION_ID, TABLES, native_tables
from signet_sync.text.memory import memory_id

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
        validate_tombstone({"kind": "tombstone", **{name: row[name] for name in names}, **listed})
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


_COLUMNS = "select name, pk from pragma_table_info(?)"


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
                    _copy(database, damaged, table)
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
