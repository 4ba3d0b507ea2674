"""Opens a workspace's index to read or count, for the command line, the MCP server and the web page.

Imports nothing heavy.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from signet_sync.errors import DatabaseError, WorkspaceError
from signet_sync.formats.timestamps import day_of
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database, note_damage
from signet_sync.storage.files import require_root
from signet_sync.storage.locations import now_us
from signet_sync.sync.store import counts, sessions

if TYPE_CHECKING:
    from signet_sync.settings.model import Settings
    from signet_sync.storage.state_dir import StateFolder
    from signet_sync.sync.workspace import Workspace

_PATIENCE = 10.0  # seconds to wait for a removal to finish


class IndexPlace(NamedTuple):
    """Names a workspace root (absolute) and its database; None is the default path in the state folder.

    `settings` reads the settings; `command_line` formats a signet-sync command so that it can be pasted; `opener` opens
    the workspace to write, given root, settings, database and whether nothing else may be touched.
    """

    root: str
    chosen: str | None
    settings: "Callable[[], Settings]"
    command_line: Callable[[str], str]
    opener: "Callable[..., AbstractContextManager[Workspace]]"

    def state(self) -> "StateFolder":
        """Returns the state folder, located without writing."""
        return state_dir.locate(self.root)

    @property
    def database(self) -> str:
        """Returns the path of the database."""
        return self.chosen or self.state().database

    def open_workspace(self, *, touch_nothing: bool = False) -> "AbstractContextManager[Workspace]":
        """Opens the workspace to write. Raises `WorkspaceError`, `DatabaseError`."""
        return self.opener(self.root, self.settings(), database=self.chosen, touch_nothing=touch_nothing)


@contextmanager
def open_index(place: IndexPlace) -> Iterator[Database]:
    """Opens the index read-only; if it is damaged, marks it, so that the next pass checks every page.

    Raises `WorkspaceError` if there is nothing to index, `DatabaseError` if there is no index yet, or it fails.
    """
    import apsw

    database = _readable(place)
    try:
        if sessions.is_half_enforced(database):
            database.connection.close()
            _finish_removal(place)
            database = _readable(place)
        yield database
    except (apsw.Error, DatabaseError) as error:
        raise note_damage(error, database.path) from error
    finally:
        database.connection.close()


def _readable(place: IndexPlace) -> Database:
    path = place.database
    try:
        return Database(path, readonly=True)
    except FileNotFoundError:
        if place.chosen is None:
            require_root(place.root)
        hint = f"run {place.command_line('reindex')} once"
        raise DatabaseError("there is no index yet", path=path, hint=hint) from None


def _finish_removal(place: IndexPlace) -> None:
    """Completes an interrupted removal, so that no reader finds what it covers.

    Raises `WorkspaceError` if it cannot be completed now.
    """
    # The pass, which nearly no reader needs.
    from signet_sync.sync import engine
    from signet_sync.sync.workspace import Request

    with place.open_workspace() as workspace:
        engine.run_pass(workspace, Request(now_us=now_us(), patience=_PATIENCE))
        if sessions.is_half_enforced(workspace.database):
            raise WorkspaceError(
                "a removal was cut off and cannot be finished now", path=place.root, hint="status says what is halted"
            )


def require_index(place: IndexPlace) -> None:
    """Raises `DatabaseError` if there is no index yet, so that a reader does not create one."""
    require_root(place.root)
    with open_index(place):
        pass


@contextmanager
def open_to_count(place: IndexPlace) -> Iterator[Database | None]:
    """Opens the index to count accesses; None where it cannot be written at once: no answer waits for a counter."""
    database = None
    if place.database != ":memory:":
        with suppress(DatabaseError, OSError):
            database = Database(place.database, create=False, wait_ms=200)
    try:
        yield database
    finally:
        if database is not None:
            database.connection.close()


def count_ids(place: IndexPlace, agent: str, ids: Sequence[str]) -> None:
    """Counts accesses to nodes, threads, statements and memories."""
    with open_to_count(place) as database:
        if ids and database is not None:
            counts.count_ids(database, agent, ids, day_of(now_us()))
