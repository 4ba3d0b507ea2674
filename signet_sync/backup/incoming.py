"""Reads native rows of a backup into memory, drops what was removed, and merges the rest: existing rows win."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from signet_sync.backup import row_form
from signet_sync.errors import DatabaseCorrupt
from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.filename import find_carried_token
from signet_sync.formats.paths import MEMORY
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import iso
from signet_sync.memories.store import memories
from signet_sync.sessions.live import store as live
from signet_sync.storage import files, state_dir
from signet_sync.storage.database import native_backup
from signet_sync.storage.database.batches import Scope
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import Table
from signet_sync.storage.database.tables import list_backed_up
from signet_sync.sync import engine, planner
from signet_sync.sync import tombstones as removals
from signet_sync.sync import tombstones as tombstones_files
from signet_sync.sync.index_records import Seal
from signet_sync.sync.planner import JudgeContext, Tombstones
from signet_sync.sync.store import texts
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Eraser, Request, Workspace


@dataclass(slots=True)
class Incoming:
    """Rows of a backup in a database of their own, with the id of their workspace.

    `invalid` counts, by table, rows that signet-sync cannot have written; `left_out` what was dropped, as gone since,
    of these `agents`. `goes` are files here that an imported removal deletes.
    """

    rows: Database
    workspace: str
    invalid: dict[str, int] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    agents: set[str] = field(default_factory=set)
    goes: tuple[str, ...] = ()


@contextmanager
def read_backup(source: str) -> Iterator[Incoming]:
    """Reads the rows of a backup. Raises what `native_backup.open_backup` raises."""
    with closing(Database(":memory:")) as rows:
        with native_backup.open_backup(source) as kept, rows.transaction():
            odd: dict[str, int] = {}
            for table, columns in kept.tables.items():
                native_backup.add_missing(rows, table, columns, _sound(table, columns, kept.rows(table, columns), odd))
            about = kept.about
        if native_backup.implausible_rows(rows):
            raise DatabaseCorrupt(
                "a row of the backup cannot be as it was written",
                path=source,
                hint="use an older one: signet-sync backup list",
                code="backup-damaged",
            )
        yield Incoming(rows, about.get("workspace", ""), odd)


def _sound(
    table: str, columns: Sequence[str], found: Iterable[tuple[Any, ...]], odd: dict[str, int]
) -> Iterator[tuple[Any, ...]]:
    """Yields the rows that signet-sync can have written, sanitized; counts the others."""
    for row in found:
        values = row_form.validate(table, dict(zip(columns, row, strict=True)))
        if values is None:
            odd[table] = odd.get(table, 0) + 1
        else:
            yield tuple(values.values())


# ── what may come in ──


def drop_removed(workspace: Workspace, incoming: Incoming, now_us: int) -> None:
    """Drops what was removed or forgotten here, and what the imported removals cover; a second call nothing more."""
    rows = incoming.rows
    undone = tombstones_files.list_lifted(workspace.root, tombstones_store.list_mirrored(rows))
    with rows.transaction():
        for tombstone in undone:
            tombstones_store.lift(rows, tombstone.agent_id, tombstone.session_token)
        incoming.left_out["undone_removals"] += len(undone)
        here = removals.all_tombstones(workspace)
        imported = {one.key: one for one in tombstones_store.list_mirrored(rows)}
        # Of two for the same token, the one of this workspace counts.
        tombstones = list({**imported, **here}.values())
        if tombstones:
            _drop_sessions(incoming, tombstones, now_us, workspace.pipeline.erasers)
        _drop_forgotten(workspace, incoming)
        memories.forget_marks_of(rows, memories.ids(workspace.database))
    incoming.goes = tuple(_list_going(workspace, [one for one in tombstones if here.get(one.key) != one], now_us))


def _drop_sessions(incoming: Incoming, tombstones: Sequence[Tombstone], now_us: int, erasers: Iterable[Eraser]) -> None:
    rows = incoming.rows
    scopes: dict[tuple[str, str], set[str]] = {}
    counting = Tombstones(tombstones)
    for seal in [Seal(*row) for row in rows.execute("select * from seals")]:
        if not planner.cover_sealed(seal, counting):
            continue
        scopes.setdefault((seal.agent_id, seal.session_token), set()).add(seal.session_id)
    found: list[Scope] = [(*key, tuple(sorted(ids))) for key, ids in sorted(scopes.items())]
    incoming.left_out["removed_sessions"] += sum(len(ids) for _, _, ids in found)
    incoming.agents |= {agent_id for agent_id, _, _ in found}
    # For sessions that another tombstone covers under a different name.
    names = (tombstones_store.name_tombstone(*scope[:2], iso(now_us)).replace(session_ids=scope[2]) for scope in found)
    removals.remove_covered(rows, [*tombstones, *names], erasers)


def _drop_forgotten(workspace: Workspace, incoming: Incoming) -> None:
    imported = list(incoming.rows.execute("select agent_id, id from memories order by 1, 2"))
    for agent_id, some in groupby(imported, itemgetter(0)):
        if gone := sorted(memories.find_forgotten(workspace.database, agent_id, [one for _, one in some])):
            memories.forget(incoming.rows, agent_id, gone)
            incoming.left_out["forgotten_memories"] += len(gone)


def _list_going(workspace: Workspace, tombstones: Sequence[Tombstone], now_us: int) -> Iterator[str]:
    """Yields the files here that imported tombstones cover."""
    counting = Tombstones(tombstones)
    judging = JudgeContext(counting, workspace.noise, lambda _: None, iso(now_us))
    for name in files.list_names(workspace.root, MEMORY, "") if counting else ():
        path = f"{MEMORY}/{name}"
        if find_carried_token(name) in counting.tokens:
            found = files.read(workspace.root, path, workspace.settings.max_file_bytes)
            if isinstance(found, Found) and planner.judge(path, found, judging).unlink:
                yield path


# ── what is merged: rows that are here win ──

# Not a table: seals that had lost their bytes and got them back.
BYTES = "sealed_bytes"


def count_rows(database: Database) -> dict[str, int]:
    """Counts the rows that are backed up, by table."""
    return {table.name: database.value(f"select count(*) from {table.rows}") for table in list_backed_up()}


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
