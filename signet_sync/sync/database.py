"""Opens the database of a workspace, exchanges a damaged one, keeps backups of native rows, looks after the agent's."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

import apsw

from signet_sync.errors import DatabaseCorrupt, DatabaseError, WorkspaceError
from signet_sync.formats.timestamps import DAY, iso, parse_instant
from signet_sync.log import logger
from signet_sync.storage import state_dir
from signet_sync.storage.database import native_backup
from signet_sync.storage.database.connection import (
    Database,
    Identity,
    clear_suspect,
    identity,
    is_suspect,
    list_set_aside,
    make_damage_error,
    set_aside,
    translate,
)
from signet_sync.storage.database.tables import TABLES, native_tables
from signet_sync.storage.durable import private_folder
from signet_sync.storage.locations import now_us
from signet_sync.sync.store import passes
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Maintenance, Pass, Workspace

KEPT = 3  # backups


def reopen(workspace: Workspace) -> None:
    """Opens the database again after its file was replaced or found damaged."""
    with suppress(DatabaseError):
        workspace.database.connection.close()
    place = workspace.database.path
    workspace.database = open_database(place, workspace.state, workspace.own_place, workspace.events)


def put_aside(workspace: Workspace, error: Exception) -> None:
    """Moves a database aside that turned out to be damaged while in use; `reopen` creates a new one.

    Raises `OSError`.
    """
    seen = workspace.database.identity
    with suppress(apsw.Error):
        workspace.database.connection.close()
    _put_aside(workspace.database.path, seen, workspace.state, error, workspace.events)


def open_database(place: str, folder: state_dir.StateFolder, own: bool, events: list[str]) -> Database:
    """Opens the database; replaces one that is damaged or lost, and restores its native rows.

    A damaged database is moved aside. What can be read of it is restored from it, the rest from the backup.
    """
    seen = identity(place)
    try:
        database, lost = _open_database(place)
    except DatabaseCorrupt as error:
        _put_aside(place, seen, folder, error, events)
        database, lost = _open_database(place)
    if lost:
        _bring_rows_back(database, backups(folder) if own else [], events)
    return database


def _open_database(place: str) -> tuple[Database, bool]:
    """Returns the database, and whether its native rows still have to be restored."""
    database = Database(place)
    try:
        if is_suspect(place):
            try:
                examine(database)
            except DatabaseCorrupt:
                raise
            except DatabaseError:
                pass  # it cannot be checked now; the next command checks it
        return database, native_backup.is_due(database)
    except apsw.Error as error:
        database.connection.close()
        raise translate(error, place) from error
    except DatabaseError:
        database.connection.close()
        raise


def examine(database: Database, tables: Iterable[str] = TABLES) -> None:
    """Checks every page of the database, and some tables closely.

    Raises `DatabaseCorrupt` if it is damaged, `DatabaseError` if it cannot be checked.
    """
    try:
        found = database.problems(closely=tables) or native_backup.implausible_rows(database)
    except apsw.Error as error:
        raise translate(error, database.path) from error
    if found:
        raise make_damage_error(found[0], database.path)
    clear_suspect(database.path)


def _put_aside(
    place: str, seen: Identity | None, folder: state_dir.StateFolder, error: Exception, events: list[str]
) -> None:
    """Moves a damaged file aside, unless another process has already replaced it. Raises `OSError`."""
    with state_dir.lock(folder, "exchange"):
        if identity(place) != seen:
            return
        moved = set_aside(place)
        clear_suspect(place)
    what = error.message if isinstance(error, DatabaseError) else error
    events.append(f"the database was damaged ({what}) and moved aside as {os.path.basename(moved)}")


def _bring_rows_back(database: Database, kept: list[str], events: list[str]) -> None:
    """Restores native rows into a new database: what the one moved aside last still yields, then a readable backup.

    A backup that is newer than the damaged database has all that this one could yield.
    """
    damaged = max(list_set_aside(database.path), key=lambda name: os.stat(name).st_ctime_ns, default=None)
    newer = damaged is not None and kept and os.stat(kept[0]).st_mtime_ns > os.stat(damaged).st_ctime_ns
    if damaged is not None and not newer and (total := native_backup.salvage(database, damaged)):
        events.append(f"{total} native rows were read from the damaged database {os.path.basename(damaged)}")
    for candidate in kept:
        try:
            counts = native_backup.restore(database, candidate)
        except DatabaseCorrupt as error:
            events.append(f"a backup could not be read: {error.message}")
            continue
        except DatabaseError as error:
            events.append(f"a backup could not be restored, the next command tries again: {error.message}")
            return
        if total := sum(counts.values()):
            events.append(f"{total} native rows came back from the backup {os.path.basename(candidate)}")
        return
    with database.transaction():
        database.set_state("backups", "restore_due", 0)


def backups(folder: state_dir.StateFolder) -> list[str]:
    """Returns the backups of a workspace, newest first."""
    try:
        names = [name for name in os.listdir(folder.backups) if name.startswith("native-") and name.endswith(".db")]
    except OSError:
        return []
    return [os.path.join(folder.backups, name) for name in sorted(names, reverse=True)]


def back_up(workspace: Workspace, now_iso: str, *, force: bool = False) -> None:
    """Writes a backup if native rows changed since the last one; with `force` always, and deletes the older ones.

    Raises `DatabaseError`, `OSError`, and with `force` `WorkspaceError` if a backup is still to be restored.
    """
    if not workspace.own_place or workspace.touch_nothing:
        return
    database = workspace.database
    if native_backup.is_due(database):
        if force:
            raise WorkspaceError("the backup was not read back yet", hint="the next command tries again")
        return
    mark = native_backup.fingerprint(database)
    kept = backups(workspace.state)
    if database.state("backups", "fingerprint") == mark and kept and not force:
        return
    folder = workspace.state.backups
    private_folder(folder)
    day = now_iso[:10].replace("-", "")
    target = os.path.join(folder, f"native-{day}.db")
    native_backup.write(database, target)
    with database.transaction():
        database.set_state("backups", "fingerprint", mark)
    # A backup of a later day was made while the clock was ahead: it holds less, and would count as the newest. After a
    # removal only the new backup is clean, whatever the days of the others.
    kept = [place for place in backups(workspace.state) if place <= target]
    keep = [target] if force else kept[:KEPT]
    for stale in backups(workspace.state):
        if stale not in keep:
            # An extra backup does no harm, but one with removed text does: the scrub must then fail and be repeated.
            with suppress(FileNotFoundError if force else OSError):
                os.unlink(stale)


class Backup(Maintenance):
    """Backs up native rows."""

    name = "backup"

    def due(self, run: Pass) -> bool:
        """Returns whether a backup may be written: until a scrub is complete, a backup could contain removed words."""
        return not tombstones_store.is_unscrubbed(run.database)

    def run(self, run: Pass) -> None:
        """Writes a backup if native rows changed."""
        back_up(run.workspace, run.now_iso)


# ── as long as the agent runs ──

# SIGTERM must end the agent within two seconds, even if another process works on the database.
BUSY_MS = 800
# Damage of pages that no query reads would be noticed only after the backups with good copies are gone.
EXAMINE_EVERY = DAY


class DatabaseSupervisor:
    """Supervises the database of a workspace for as long as the agent runs."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.lost = False
        self._shorten_timeout()

    def ensure_open(self) -> bool:
        """Reopens the database if its file is no longer the one that we write, or `lost` was set; returns True if so.

        Raises `DatabaseError`; then the next call tries again. One that another version of signet-sync took over is not
        opened again: that would take it over once more.
        """
        with suppress(apsw.Error):  # closed, or not readable
            self.workspace.database.refuse_changed()
        if self.workspace.database.is_replaced():
            logger.warning("the database or its log was deleted or replaced; it is opened again")
        elif not self.lost:
            return False
        self.lost = True
        with suppress(apsw.Error):
            self.workspace.database.connection.close()
        reopen(self.workspace)
        self._shorten_timeout()
        self.lost = False
        return True

    def check(self, *, deeper: bool = False) -> None:
        """Checks every page after a reader found damage, and where `deeper` once a day. Raises `DatabaseCorrupt`.

        Never by opening the file: closing it would drop SQLite's locks. Other errors are left to the code that meets
        them.
        """
        database, at_us = self.workspace.database, now_us()
        if is_suspect(database.path):
            examine(database)
        elif deeper:
            before = parse_instant(passes.get(database, "examined_at") or "")
            if before is None or abs(at_us - before) > EXAMINE_EVERY:
                examine(database, native_tables())
                with database.transaction():
                    passes.put(database, "examined_at", iso(at_us))

    def move_aside(self, error: DatabaseCorrupt) -> None:
        """Moves a damaged database away, so that the next `ensure_open` creates a new one."""
        self.lost = True
        try:
            put_aside(self.workspace, error)
        except (OSError, WorkspaceError) as trouble:
            logger.error("the damaged database cannot be moved aside: {}", trouble)

    def _shorten_timeout(self) -> None:
        self.workspace.database.connection.set_busy_timeout(BUSY_MS)
