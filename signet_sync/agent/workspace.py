"""The composition root: one workspace with its settings, state folder and database, opened for a purpose."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from signet_sync import state
from signet_sync.config import Settings
from signet_sync.contracts.noise import NoiseRule
from signet_sync.contracts.places import MEMORY, WORKSPACE_ID
from signet_sync.errors import DatabaseCorrupt, DatabaseError, DatabaseUnfinished, WorkspaceError
from signet_sync.index import backup
from signet_sync.index.database import Database, discard, set_aside
from signet_sync.vault import files


@dataclass(slots=True)
class Workspace:
    """Everything a pass needs. `touch_nothing`: only the database may be written (`--index-only`)."""

    root: str
    settings: Settings
    state: state.StateFolder
    database: Database
    touch_nothing: bool = False
    own_place: bool = True
    events: list[str] = field(default_factory=list)

    @property
    def noise(self) -> NoiseRule:
        """The noise rule of the settings."""
        return NoiseRule.extended(self.settings.noise_projects, self.settings.noise_sessions)

    def close(self) -> None:
        """Ends the database connection cleanly."""
        self.database.close()

    def reopen(self) -> None:
        """Opens the database anew after its file was exchanged or found damaged."""
        with suppress(DatabaseError):
            self.database.connection.close()
        self.database = open_database(self.database.path, self.state, self.own_place, self.events)

    def exchange_damaged(self, error: Exception) -> None:
        """Moves a database aside that turned out to be damaged while it was used, and makes a new one."""
        with suppress(DatabaseError):
            self.database.connection.close()
        moved = set_aside(self.database.path)
        self.events.append(f"the database was damaged ({error}) and moved aside as {os.path.basename(moved)}")
        self.database = open_database(self.database.path, self.state, self.own_place, self.events)


@contextmanager
def opened(
    root: str, settings: Settings, *, database: str | None = None, touch_nothing: bool = False
) -> Iterator[Workspace]:
    """A workspace for a command that indexes. Raises `WorkspaceError`, `DatabaseError`."""
    workspace = open_workspace(root, settings, database=database, touch_nothing=touch_nothing)
    try:
        yield workspace
    finally:
        workspace.close()


def open_workspace(
    root: str, settings: Settings, *, database: str | None = None, touch_nothing: bool = False
) -> Workspace:
    """Opens state folder and database; the root must exist. Closing is the caller's."""
    require_root(root)
    folder = state.locate(root) if touch_nothing else establish(root)
    place = database or folder.database
    if place != ":memory:":
        place = os.path.abspath(os.path.expanduser(place))
        refuse_inside(root, place)
    events: list[str] = []
    own = place == folder.database
    opened_database = open_database(place, folder, own, events)
    return Workspace(root, settings, folder, opened_database, touch_nothing, own, events)


def require_root(root: str) -> None:
    """Raises `WorkspaceError` unless the root is a folder that can be listed."""
    if not os.path.isdir(root):
        what = "is not a folder" if os.path.exists(root) else "does not exist"
        raise WorkspaceError(
            f"the workspace {what}",
            path=root,
            hint="give another one with --workspace, or make it with: signet-sync init",
        )
    if not os.access(root, os.R_OK | os.X_OK):
        raise WorkspaceError("the workspace cannot be read", path=root, hint="check its permissions")


def refuse_inside(root: str, place: str) -> None:
    """A database inside the vault would be carried away half-written by a sync service."""
    real_root = os.path.realpath(root)
    folder = os.path.realpath(os.path.dirname(place))
    inside = os.path.join(real_root, MEMORY)
    if folder == inside or folder.startswith(inside + os.sep):
        raise WorkspaceError(
            "a database inside memory/ would be corrupted by sync services",
            path=place,
            hint="give --db a place elsewhere",
        )


def establish(root: str) -> state.StateFolder:
    """The state folder for a command that may write; gives the workspace an id where it has none."""

    def write_id(fresh: str, old: str | None) -> None:
        files.prepare(root)
        data = (fresh + "\n").encode()
        if old is not None:
            files.replace(root, WORKSPACE_ID, data, None)
            return
        try:
            files.create_once(root, WORKSPACE_ID, data)
        except FileExistsError:
            files.replace(root, WORKSPACE_ID, data, None)

    return state.establish(root, write_id)


def open_database(place: str, folder: state.StateFolder, own: bool, events: list[str]) -> Database:
    """Opens the database; a damaged one is moved aside, a lost one made anew, native rows come back from the backup."""
    try:
        database = Database(place)
    except DatabaseUnfinished:
        with state.workspace_lock(folder):
            # Whoever holds the lock knows that no builder is alive: what is still unfinished now was left by a crash.
            try:
                return Database(place)
            except DatabaseUnfinished:
                discard(place)
        database = Database(place)
    except DatabaseCorrupt as error:
        moved = set_aside(place)
        events.append(f"the database was damaged ({error.message}) and moved aside as {os.path.basename(moved)}")
        database = Database(place)
    if own and database.meta("restore") is not None:
        _restore(database, folder, events)
    return database


def _restore(database: Database, folder: state.StateFolder, events: list[str]) -> None:
    """Brings native rows back into a new database from the newest backup that can be read."""
    for candidate in backups(folder):
        try:
            counts = backup.restore(database, candidate)
        except DatabaseCorrupt as error:
            events.append(f"a backup could not be read: {error.message}")
            continue
        except DatabaseError as error:
            events.append(f"a backup could not be restored, the next command tries again: {error.message}")
            return
        total = sum(counts.values())
        if total:
            events.append(f"{total} native rows came back from the backup {os.path.basename(candidate)}")
        return
    with database.transaction():
        database.execute("delete from meta where key = 'restore'")


def backups(folder: state.StateFolder) -> list[str]:
    """Backups of a workspace, newest first."""
    try:
        names = [name for name in os.listdir(folder.backups) if name.startswith("native-") and name.endswith(".db")]
    except OSError:
        return []
    return [os.path.join(folder.backups, name) for name in sorted(names, reverse=True)]


def back_up(workspace: Workspace, now_iso: str, *, force: bool = False) -> None:
    """Writes a backup when native rows moved since the last one; `force` rewrites it so that nothing older is left.

    Raises `DatabaseError`, `OSError`.
    """
    if not workspace.own_place or workspace.touch_nothing:
        return
    database = workspace.database
    if not force and database.meta("restore") is not None:
        return  # what stands in the backups is more than what we have
    mark = backup.fingerprint(database)
    kept = backups(workspace.state)
    if database.meta("backup") == mark and kept and not force:
        return
    folder = workspace.state.backups
    os.makedirs(folder, mode=0o700, exist_ok=True)
    day = now_iso[:10].replace("-", "")
    target = os.path.join(folder, f"native-{day}.db")
    backup.write(database, target)
    with database.transaction():
        database.set_meta("backup", mark)
    # After a removal only the new one is clean, whatever day the others claim to be of.
    # One of a later day was made when the clock was ahead: it holds less, and would be taken for the newest.
    kept = [place for place in backups(workspace.state) if place <= target]
    keep = [target] if force else kept[: workspace.settings.backup_keep]
    for stale in backups(workspace.state):
        if stale not in keep:
            # An old one too many does no harm, but one with words of what was removed does: then the scrub is not over.
            with suppress(FileNotFoundError if force else OSError):
                os.unlink(stale)
