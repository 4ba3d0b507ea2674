"""Deletes the rows of a session, an artifact or an id, as their tables declare it. In the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from signet_sync.storage.database.connection import Database
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
