"""Reads the rows of many sessions or ids with one statement, deletes them, and keeps full text in few segments.

FTS5 writes a segment with every change, and merges them on request; by itself it would merge inside a commit, even the
largest segments of an index. The options of its tables (`derived`) let a commit merge only if there are far too many.

A wipe overwrites what SQLite leaves of deleted rows in its pages. `secure_delete` overwrites a row where it is. When
rows move to another page, to make space or to fill it, their bytes stay in the old page, in the part that no cell uses;
that copy survives the deletion of the row. Nothing reads those bytes, so a write of zeroes may be interrupted anywhere.
Source: the file format, *B-tree Pages*.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Literal

import apsw

from signet_sync.errors import DatabaseError
from signet_sync.storage.database.connection import BUSY_MS, Database, translate
from signet_sync.storage.database.table import SESSION, placeholders
from signet_sync.storage.database.tables import TABLES, full_text

Session = tuple[str, str, str]  # agent, token, session id

_NAMES = "agent_id, session_token, session_id"
LISTED = "in (select value from json_each(?))"  # one of the values that `pack_values` gives

# Signet ends each session under an id of its own; only its key is the harness's id, which is ours. What has that id and
# a transcript is the whole session: its id, for an artifact `a`; null for all others.
WHOLE = """(select o.session_id from memory_artifacts o where a.session_id glob 'session-end:*'
    and o.agent_id = a.agent_id and o.session_id = a.session_key and o.harness = a.harness
    and o.source_kind = 'transcript' limit 1)"""


def pack_values(values: Iterable[int | str]) -> str:
    """Packs any number of values into one that is bound."""
    return json.dumps(list(values))


def rows_of_sessions(
    database: Database, columns: str, table: str, sessions: Collection[Session], *, by: str | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yields rows of a table, session by session; `by` names the index."""
    index = f" indexed by {by}" if by else ""
    return database.execute(
        f"select {columns} from (select value->>0 as agent_id, value->>1 as session_token, value->>2 as session_id"
        f" from json_each(?)) cross join {table}{index} using (agent_id, session_token, session_id)",
        (json.dumps(list(sessions)),),
    )


def rows_with_values(
    database: Database, columns: str, table: str, column: str, values: Iterable[int | str]
) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of a table in which a column holds one of some values."""
    return database.execute(
        f"select {columns} from (select value as given from json_each(?)) cross join {table} on {column} = given",
        (pack_values(values),),
    )


def numbers(database: Database, sessions: Collection[Session]) -> dict[Session, int]:
    """Returns the numbers of those sessions that have one."""
    return {row[1:]: row[0] for row in rows_of_sessions(database, f"session, {_NAMES}", "sessions", sessions)}


def number(database: Database, sessions: Collection[Session]) -> None:
    """Numbers sessions. In the caller's transaction."""
    database.executemany(f"insert into sessions({_NAMES}) values(?, ?, ?) on conflict do nothing", list(sessions))


def artifacts(database: Database, paths: Iterable[str]) -> dict[str, int]:
    """Returns the numbers of some artifacts by path."""
    return {
        row[0]: row[1]
        for row in rows_with_values(database, "source_path, id", "memory_artifacts", "source_path", paths)
    }


def rows_with_ids(
    database: Database, columns: str, table: str, agent_id: str, column: str, ids: Collection[str]
) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of a table in which a column holds one of some ids."""
    return database.execute(
        f"select {columns} from (select value as given from json_each(?2)) cross join {table}"
        f" on agent_id = ?1 and {column} = given",
        (agent_id, pack_values(ids)),
    )


STEP = 64
"""Pages of full text that one step writes: some milliseconds."""

_BULK_STEP = 2_000  # the same after many files at once, which took far longer


def merge_step(database: Database, pages: int = STEP) -> bool:
    """Merges some segments, or a part of them, in its own transaction; False if there is nothing to merge.

    Also False if another program is writing, which is not waited for, and if the disk is full: merging is never urgent.
    """
    database.connection.set_busy_timeout(0)
    try:
        with database.transaction():
            merged = any(_merge(database, table, pages) for table in full_text())
            if not merged:  # what was merged has left as many free pages
                list(database.execute("pragma incremental_vacuum"))
            return merged
    except DatabaseError as error:
        if isinstance(error.__cause__, (apsw.BusyError, apsw.FullError)):
            return False
        raise
    finally:
        database.connection.set_busy_timeout(BUSY_MS)


def merge_all(database: Database) -> None:
    """Merges until nothing is left: a search costs as much for each segment as for hundreds of artifacts in one."""
    while merge_step(database, _BULK_STEP):
        pass


def _merge(database: Database, table: str, pages: int) -> bool:
    before = database.connection.total_changes()
    database.execute(f"insert into {table}({table}, rank) values('merge', ?)", (pages,))
    # Writing fewer than two rows means that nothing was merged: https://sqlite.org/fts5.html#the_merge_command
    return database.connection.total_changes() - before >= 2


# ── deleting what belongs to a session, an artifact or an id, as tables declare it; in the caller's transaction ──

Scope = tuple[str, str, tuple[str, ...]]  # agent, token, session ids; no ids: every session of the token


def make_condition(scope: Scope, columns: tuple[str, str, str] | tuple[str] = SESSION) -> tuple[str, list[str]]:
    """Turns a scope into a condition of SQL and the values to bind."""
    if len(columns) == 1:
        where, bindings = make_condition(scope)
        return f"{columns[0]} in (select session from sessions where {where})", bindings
    agent_id, token, ids = scope
    agent, of_token, of_id = columns
    some = f" and {of_id} in ({placeholders(len(ids))})" if ids else ""
    return f"{agent} = ? and {of_token} = ?{some}", [agent_id, token, *ids]


def drop_session(database: Database, scope: Scope, kind: Literal["derived", "native"]) -> None:
    """Deletes the rows of a scope from the derived or from the native tables."""
    for table in TABLES.values():
        if table.session and table.kind == kind:
            where, bindings = make_condition(scope, table.session)
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
