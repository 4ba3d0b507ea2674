"""Deletes the rows of a session, an artifact or an id, as their tables declare it. In the caller's transaction.

A wipe overwrites what SQLite leaves of them in its pages. `secure_delete` overwrites a row where it is. When rows
move to another page, to make space or to fill it, their bytes stay in the old page, in the part that no cell uses; that
copy survives the deletion of the row. Nothing reads those bytes, so a write of zeroes may be interrupted anywhere.
Source: the file format, *B-tree Pages*.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from typing import Literal

import apsw

from signet_sync.storage.database.connection import Database, translate
from signet_sync.storage.database.table import SESSION, placeholders
from signet_sync.storage.database.tables import TABLES

Scope = tuple[str, str, tuple[str, ...]]  # agent, token, session ids; no ids: every session of the token


def within(scope: Scope, columns: tuple[str, str, str] | tuple[str] = SESSION) -> tuple[str, list[str]]:
    """Turns a scope into a condition of SQL and the values to bind."""
    if len(columns) == 1:
        where, bindings = within(scope)
        return f"{columns[0]} in (select session from sessions where {where})", bindings
    agent_id, token, ids = scope
    agent, of_token, of_id = columns
    some = f" and {of_id} in ({placeholders(len(ids))})" if ids else ""
    return f"{agent} = ? and {of_token} = ?{some}", [agent_id, token, *ids]


def drop_session(database: Database, scope: Scope, kind: Literal["derived", "native"]) -> None:
    """Deletes the rows of a scope from the derived or from the native tables."""
    for table in TABLES.values():
        if table.session and table.kind == kind:
            where, bindings = within(scope, table.session)
            database.execute(f"delete from {table.name} where {where}", bindings)


def drop_artifacts(database: Database, agent_id: str, paths: Iterable[str]) -> None:
    """Deletes the rows of an agent's artifacts."""
    rows = [(agent_id, path) for path in paths]
    for table in TABLES.values():
        if table.artifact:
            where = " and ".join(f"{column} = ?" for column in table.artifact)
            database.executemany(
                f"delete from {table.name} where {where}", [row[-len(table.artifact) :] for row in rows]
            )


def drop_ids(database: Database, ids: Sequence[tuple[str, str]], *names: str) -> None:
    """Deletes the rows of ids (agent, id) from some tables."""
    for name in names:
        database.executemany(f"delete from {name} where agent_id = ? and {TABLES[name].handle} = ?", ids)


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
