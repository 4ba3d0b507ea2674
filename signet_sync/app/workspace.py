"""Opens a workspace: settings, state folder and database; and registers what takes part in a pass on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

from signet_sync.errors import DatabaseError, WorkspaceError, sentence_of
from signet_sync.formats.paths import MEMORY, WORKSPACE_ID
from signet_sync.settings import model
from signet_sync.settings.model import Settings
from signet_sync.storage import locations, state_dir, writing
from signet_sync.storage.database.connection import note_damage
from signet_sync.storage.files import require_root
from signet_sync.sync.database import open_database
from signet_sync.sync.workspace import InFull, Pipeline, Workspace

# The one list of features that a pass knows.
DERIVERS = (
    "signet_sync.graph.stage:SessionProjects",
    "signet_sync.graph.stage:Graph",
    "signet_sync.graph.stage:Threads",
    "signet_sync.graph.stage:Statements",
    "signet_sync.graph.stage:Quotes",
    "signet_sync.sessions.live.stage:LiveStatements",
    "signet_sync.pages.stage:SessionLog",
    "signet_sync.recall.stage:FoundStatements",
)
RECOVERIES = (
    "signet_sync.statements.stage:Words",
    # First, because removing a second link changes the signature of a file published just before a crash.
    "signet_sync.pages.conflict_copies:DisplacedSaves",
    # Before flows are finished: one of a removed session must not write.
    "signet_sync.privacy.stage:SignetRemovals",
    "signet_sync.sessions.stage:LiveTurns",
    "signet_sync.sessions.stage:UnfinishedFlows",
)
ERASERS = (
    "signet_sync.privacy.stage:RemovedSessions",
    "signet_sync.entities.stage:Entities",
    "signet_sync.sessions.stage:LiveTurns",
)
MAINTENANCE = (
    InFull("signet_sync.sync.deriving:FullText"),
    "signet_sync.statements.stage:Words",
    "signet_sync.entities.stage:Entities",
    InFull("signet_sync.sync.manifests:MissingManifests"),
    InFull("signet_sync.integrity.stage:Retention"),
    InFull("signet_sync.privacy.stage:ReturnedPages"),
    "signet_sync.privacy.stage:Scrub",
    InFull("signet_sync.sync.database:Backup"),
)
PUBLISHERS = (
    "signet_sync.pages.stage:MemoryPages",
    "signet_sync.pages.stage:LogPages",
    "signet_sync.pages.stage:ConflictCopies",
)
PIPELINE = Pipeline(DERIVERS, RECOVERIES, ERASERS, MAINTENANCE, PUBLISHERS)


@contextmanager
def open_to_write(
    root: str, settings: Settings, *, database: str | None = None, touch_nothing: bool = False
) -> Iterator[Workspace]:
    """Opens a workspace for a command that indexes. Raises `WorkspaceError`, `DatabaseError`.

    Damage that the command meets is noted: the next one checks every page.
    """
    workspace = open_workspace(root, settings, database=database, touch_nothing=touch_nothing)
    try:
        yield workspace
    except (apsw.Error, DatabaseError) as error:
        raise note_damage(error, workspace.database.path) from error
    finally:
        workspace.close()


def open_workspace(
    root: str, settings: Settings, *, database: str | None = None, touch_nothing: bool = False
) -> Workspace:
    """Opens state folder and database; the root must exist. The caller closes the workspace."""
    require_root(root)
    folder = state_dir.locate(root) if touch_nothing else establish(root)
    if not touch_nothing:
        keep_settings(root, folder)
    place = database or folder.database
    if place != ":memory:":
        place = os.path.abspath(os.path.expanduser(place))
        refuse_inside(root, place)
    events: list[str] = []
    own = place == folder.database
    opened_database = open_database(place, folder, own, events)
    workspace = Workspace(root, settings, folder, opened_database, touch_nothing, own, events, PIPELINE)
    if own and not touch_nothing and (other := state_dir.find_under_path(folder, root)) is not None:
        _take_over(workspace, other)
    return workspace


def _take_over(workspace: Workspace, other: state_dir.StateFolder) -> None:
    from signet_sync.backup import operations  # slow import, needed for a workspace with two states only

    try:
        operations.take_over(workspace, other, locations.now_us())
    except (WorkspaceError, DatabaseError, OSError) as error:
        workspace.events.append(f"what was kept under the workspace's path is not merged yet: {sentence_of(error)}")


def refuse_inside(root: str, place: str) -> None:
    """Raises for a database inside the vault: a sync service would copy it half-written."""
    real_root = os.path.realpath(root)
    folder = os.path.realpath(os.path.dirname(place))
    inside = os.path.join(real_root, MEMORY)
    if folder == inside or folder.startswith(inside + os.sep):
        raise WorkspaceError(
            "a database inside memory/ would be corrupted by sync services",
            path=place,
            hint="give --db a place elsewhere",
        )


def establish(root: str) -> state_dir.StateFolder:
    """Creates the state folder for a command that may write; gives the workspace an id if it has none."""

    def write_id(fresh: str) -> None:
        writing.prepare(root)
        writing.replace(root, WORKSPACE_ID, f"{fresh}\n".encode(), None)

    return state_dir.establish(root, write_id)


def keep_settings(root: str, folder: state_dir.StateFolder) -> None:
    """Saves the present good settings, for use while one of the files is broken."""
    kept = state_dir.read_json(folder.settings) or {}
    good = model.last_good_values(root, kept)
    if good != kept:
        with suppress(OSError):  # if the disk is full, the pass reports it
            state_dir.write_json(folder.settings, good, durable=True)
