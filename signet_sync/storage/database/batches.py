"""Reads the rows of many sessions or ids with one statement, and keeps full text in few segments.

FTS5 writes a segment with every change, and merges them on request; by itself it would merge inside a commit, even the
largest segments of an index. The options of its tables (`derived`) let a commit merge only if there are far too many.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import apsw

from signet_sync.errors import DatabaseError
from signet_sync.storage.database.connection import BUSY_MS, Database
from signet_sync.storage.database.tables import full_text

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
