"""Writes backups of native rows, and restores them."""

from __future__ import annotations

import os
from contextlib import closing, suppress
from typing import Any

from signet_sync.backup.incoming import Incoming, count_rows, drop_removed, merge
from signet_sync.errors import AnotherAgent, DatabaseError, UsageError
from signet_sync.formats.timestamps import iso
from signet_sync.graph.store import nodes
from signet_sync.graph.store.nodes import Orphans
from signet_sync.memories import operations as memories_operations
from signet_sync.sessions.live import operations as live
from signet_sync.sessions.live import store as live_store
from signet_sync.storage import durable, state_dir
from signet_sync.storage.database import native_backup
from signet_sync.storage.durable import private_folder, sync_folder
from signet_sync.sync import engine
from signet_sync.sync.database import KEPT, back_up, backups, open_database
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Request, Workspace

# ── writing ──


def create(workspace: Workspace, target: str | None, now_us: int) -> tuple[str, dict[str, int]]:
    """Writes a backup to a file, or (None) into the state folder; returns its path, and its rows by table.

    Raises `UsageError`, `WorkspaceError`, `DatabaseError`, `OSError`.
    """
    if target is not None:
        _refuse_inside(workspace, target)
    elif not workspace.own_place:
        raise UsageError(
            "this database has no backup folder",
            hint="name a file: signet-sync backup create FILE",
            code="no-folder",
        )
    with state_dir.workspace_lock(workspace.state):
        # Nothing removed is written out: the vault is looked at, and a pending scrub finished.
        memories_operations.first_pass(workspace, now_us)
        if tombstones_store.is_unscrubbed(workspace.database):
            engine.run_locked(workspace, Request(now_us=now_us))
        rows = count_rows(workspace.database)
        if target is None:
            path = _keep(workspace, now_us)
            _rotate(workspace, path)
        else:
            path = os.path.abspath(target)
            about = {"workspace": workspace.state.key, "made_at": iso(now_us)}
            with durable.replace_file(path, native_backup.is_backup) as temporary:
                native_backup.write(workspace.database, temporary, about, whole=True)
    return path, rows


def _keep(workspace: Workspace, now_us: int) -> str:
    """Writes a backup of the present state into the state folder."""
    folder = workspace.state.backups
    private_folder(folder)
    when = iso(now_us)
    stem = os.path.join(folder, f"native-{when[:10].replace('-', '')}-{when[11:19].replace(':', '')}")
    path, number = f"{stem}.db", 2
    while os.path.lexists(path):
        path, number = f"{stem}-{number}.db", number + 1
    native_backup.write(workspace.database, path, {"workspace": workspace.state.key, "made_at": when}, whole=True)
    return path


def _rotate(workspace: Workspace, fresh: str) -> None:
    """Deletes backups beyond the number to keep, also those made by hand; `fresh` stays."""
    for stale in backups(workspace.state)[KEPT:]:
        with suppress(OSError):
            if stale != fresh:
                os.unlink(stale)


def _refuse_inside(workspace: Workspace, target: str) -> None:
    """Refuses the workspace, which is synced and versioned, and the state folder, which removals do not search."""
    folder = os.path.realpath(os.path.dirname(os.path.abspath(target)))
    for place, what in ((workspace.root, "workspace"), (workspace.state.path, "state folder")):
        real = os.path.realpath(place)
        if folder == real or folder.startswith(real + os.sep):
            raise UsageError(
                f"this is inside the {what}, and the file would keep what is later removed from it",
                path=target,
                hint="choose a place outside, for example on another disk",
                code="inside-workspace",
            )


# ── looking ──


def list_backups(folder: state_dir.StateFolder) -> list[dict[str, Any]]:
    """Lists the backups of a workspace, newest first, each verified completely; `trouble` says why one is not whole."""
    found = []
    for path in backups(folder):
        status = os.stat(path)
        made_at, rows, trouble = iso(status.st_mtime_ns // 1000), dict[str, int](), None
        try:
            with native_backup.open_backup(path) as kept:
                made_at, rows = kept.about.get("made_at", made_at), kept.counts()
        except DatabaseError as error:
            trouble = error.message
        one = {"name": os.path.basename(path), "path": path, "made_at": made_at, "bytes": status.st_size, "rows": rows}
        found.append({**one, "total": sum(rows.values()), "ok": trouble is None, "trouble": trouble})
    return found


def find_backup(folder: state_dir.StateFolder, name: str | None) -> str:
    """Finds a backup by file path, by its name in the state folder, or (None) the newest one there.

    Raises `UsageError`.
    """
    kept = backups(folder)
    if name is None:
        if not kept:
            raise UsageError(
                "there is no backup of this workspace here",
                path=folder.backups,
                hint="name the file: signet-sync backup restore FILE",
                code="no-backup",
            )
        return kept[0]
    for path in kept:
        if name in (os.path.basename(path), os.path.basename(path).removesuffix(".db")):
            return path
    if not os.path.isfile(name):
        what = "this is not a file" if os.path.exists(name) else "there is no such file"
        raise UsageError(what, path=name, hint="signet-sync backup list shows the existing ones", code="no-backup")
    return os.path.abspath(name)


# ── bringing back ──


def _drop_orphaned_marks(workspace: Workspace, agents: set[str], taken: dict[str, int]) -> None:
    """Deletes imported pins and accesses of removed sessions, which only the graph identifies; corrects the counts."""
    with workspace.database.transaction():
        before = count_rows(workspace.database)
        nodes.forget_orphaned_marks(workspace.database, Orphans(set(), agents))
        for table, count in count_rows(workspace.database).items():
            taken[table] = max(taken[table] - (before[table] - count), 0)


def merge_rows(workspace: Workspace, incoming: Incoming, now_us: int) -> tuple[dict[str, int], str | None, str]:
    """Merges rows and runs a pass: existing rows win, and nothing removed comes back.

    Returns the rows that came by table, the backup of the state before, and why pages are not up to date yet. Raises
    `WorkspaceError`, `DatabaseError`, `OSError`.
    """
    database = workspace.database
    before = None
    with state_dir.workspace_lock(workspace.state):
        drop_removed(workspace, incoming, now_us)
        if workspace.own_place and any(count_rows(database).values()):
            before = _keep(workspace, now_us)
        with database.transaction(durable=True):
            taken = merge(database, incoming.rows)
        if before is not None and not any(taken.values()):
            os.unlink(before)
            before = None
        outcome = engine.run_locked(workspace, Request(now_us=now_us))
        if taken["session_transcripts"] and outcome.cliff is None:
            live.drop_recorded(workspace, live_store.list_handed_over(incoming.rows))
        if incoming.agents and outcome.cliff is None:
            _drop_orphaned_marks(workspace, incoming.agents, taken)
        back_up(workspace, iso(now_us))
        if before is not None:  # only now: the restored backup may be one of those deleted
            _rotate(workspace, before)
    if before is not None and not os.path.exists(before):
        before = None  # an imported removal deleted it
    waiting = outcome.cliff.message if outcome.cliff is not None else outcome.held or "; ".join(outcome.trouble[:1])
    return taken, before, waiting


def take_over(workspace: Workspace, other: state_dir.StateFolder, now_us: int) -> None:
    """Merges a second state folder of the same workspace into its own, and deletes it.

    Each step looks at what is there: a call after a kill does the rest. While an agent runs on the other folder it
    stays. Raises `WorkspaceError`, `DatabaseError`, `OSError`.
    """
    own = workspace.state
    with state_dir.hold_workspace(own, 60.0):
        if os.path.isdir(other.path):
            try:
                with state_dir.run_lock(other), state_dir.workspace_lock(other):
                    _merge_folder(workspace, other, now_us)
            except AnotherAgent:
                return
        state_dir.discard(other, os.path.realpath(workspace.root))


def _merge_folder(workspace: Workspace, other: state_dir.StateFolder, now_us: int) -> None:
    for place in (other.journal, other.live, other.injected, other.spool, os.path.join(other.spool, "bad")):
        target = os.path.join(workspace.state.path, os.path.relpath(place, other.path))
        for name in os.listdir(place) if os.path.isdir(place) else ():
            path = os.path.join(place, name)
            if os.path.isfile(path) and not os.path.lexists(os.path.join(target, name)):
                private_folder(target)
                os.rename(path, os.path.join(target, name))
        if os.path.isdir(target):
            sync_folder(target)
    if os.path.exists(other.database):
        with closing(open_database(other.database, other, True, workspace.events)) as rows:
            taken, _, _ = merge_rows(workspace, Incoming(rows, other.key), now_us)
        workspace.events.append(f"{sum(taken.values())} rows kept under the workspace's path were merged")
