"""Merges native rows of another database into this one: existing rows win; drops memories that it does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from signet_sync.backup.incoming import Incoming
from signet_sync.memories.store import memories
from signet_sync.sessions.store import live
from signet_sync.storage import state_dir
from signet_sync.storage.database import native_backup
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import Table
from signet_sync.storage.database.tables import list_backed_up
from signet_sync.sync import engine
from signet_sync.sync.request import Request
from signet_sync.sync.store import texts
from signet_sync.sync.workspace import Workspace

# Not a table: seals that had lost their bytes and got them back.
BYTES = "sealed_bytes"


def counts(database: Database) -> dict[str, int]:
    """Counts the rows that are backed up, by table."""
    return {table.name: database.value(f"select count(*) from {table.rows}") for table in list_backed_up()}


def missing(database: Database, other: Database) -> dict[str, int]:
    """Counts the rows of the other database that this one lacks, by table."""
    found = {
        table.name: len(
            native_backup.missing_rows(database, table.name, table.columns, _rows(other, table, table.columns))
        )
        for table in list_backed_up()
    }
    return {**found, BYTES: len(list(_bytes(database, other)))}


def merge(database: Database, other: Database) -> dict[str, int]:
    """Adopts the rows that this database lacks; returns how many by table. In the caller's transaction.

    A seal that has lost its bytes gets them back from an equal one.
    """
    given = list(_bytes(database, other))
    database.executemany("update seals set packed = ? where path = ?", given)
    taken = {}
    for table in list_backed_up():
        names = tuple(table.types)
        taken[table.name] = native_backup.add_missing(database, table.name, names, _rows(other, table, names))
    if taken["session_transcripts"]:
        live.drop_shapes(database)
    if taken["memories"]:
        texts.put(database, memories.lines(database))
    return {**taken, BYTES: len(given)}


def _rows(database: Database, table: Table, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    # Rows with a rowid keep the order in which they were written.
    order = ", ".join(columns) if table.ddl[0].endswith("without rowid") else "rowid"
    return database.execute(f"select {', '.join(columns)} from {table.rows} order by {order}")


def _bytes(database: Database, other: Database) -> Iterator[tuple[bytes, str]]:
    """Yields bytes and path of seals whose bytes this database has lost and the other one has."""
    for path, *seal in list(database.execute("select path, digest, file_sha256 from seals where packed is null")):
        packed = other.value(
            "select packed from seals where path = ? and digest = ? and file_sha256 = ?", (path, *seal)
        )
        if packed:
            yield packed, path


def others(workspace: Workspace, incoming: Incoming) -> list[tuple[str, str]]:
    """Returns agent and id of the memories that are here and not in a backup."""
    return sorted({*memories.ids(workspace.database)} - {*memories.ids(incoming.rows)})


def drop_others(workspace: Workspace, incoming: Incoming, now_us: int) -> None:
    """Drops them from rows and pages. It is no removal: backups keep them, and they may be brought again.

    Raises `WorkspaceError`, `DatabaseError`.
    """
    with state_dir.workspace_lock(workspace.state):
        gone = others(workspace, incoming)
        with workspace.database.transaction(durable=True):
            for agent_id, some in groupby(gone, itemgetter(0)):
                memories.drop(workspace.database, agent_id, [memory_id for _, memory_id in some])
        engine.run_locked(workspace, Request(now_us=now_us))
