"""Reads the rows of many sessions, or of many ids of an agent, with one statement."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from signet_sync.storage.database.connection import Database

Session = tuple[str, str, str]  # agent, token, session id

_NAMES = "agent_id, session_token, session_id"
LISTED = "in (select value from json_each(?))"  # one of the values that `listed` gives


def listed(values: Iterable[int | str]) -> str:
    """Packs any number of values into one that is bound."""
    return json.dumps(list(values))


def of_sessions(
    database: Database, columns: str, table: str, sessions: Collection[Session], *, by: str | None = None
) -> Iterator[tuple[Any, ...]]:
    """Yields rows of a table, session by session; `by` names the index."""
    index = f" indexed by {by}" if by else ""
    return database.execute(
        f"select {columns} from (select value->>0 as agent_id, value->>1 as session_token, value->>2 as session_id"
        f" from json_each(?)) cross join {table}{index} using (agent_id, session_token, session_id)",
        (json.dumps(list(sessions)),),
    )


def of_values(
    database: Database, columns: str, table: str, column: str, values: Iterable[int | str]
) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of a table in which a column holds one of some values."""
    return database.execute(
        f"select {columns} from (select value as given from json_each(?)) cross join {table} on {column} = given",
        (listed(values),),
    )


def numbers(database: Database, sessions: Collection[Session]) -> dict[Session, int]:
    """Returns the numbers of those sessions that have one."""
    return {row[1:]: row[0] for row in of_sessions(database, f"session, {_NAMES}", "sessions", sessions)}


def number(database: Database, sessions: Collection[Session]) -> None:
    """Numbers sessions. In the caller's transaction."""
    database.executemany(f"insert into sessions({_NAMES}) values(?, ?, ?) on conflict do nothing", list(sessions))


def artifacts(database: Database, paths: Iterable[str]) -> dict[str, int]:
    """Returns the numbers of some artifacts by path."""
    return {row[0]: row[1] for row in of_values(database, "source_path, id", "memory_artifacts", "source_path", paths)}


def of_ids(
    database: Database, columns: str, table: str, agent_id: str, column: str, ids: Collection[str]
) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of a table in which a column holds one of some ids."""
    return database.execute(
        f"select {columns} from (select value as given from json_each(?2)) cross join {table}"
        f" on agent_id = ?1 and {column} = given",
        (agent_id, listed(ids)),
    )
