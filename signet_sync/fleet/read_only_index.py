"""Indexes a workspace in memory, to be queried like its own index; nothing is written anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from signet_sync.app.pipeline import PIPELINE
from signet_sync.settings import model
from signet_sync.storage import locations
from signet_sync.storage.database.connection import Database
from signet_sync.sync.engine import run_locked
from signet_sync.sync.request import Request
from signet_sync.sync.workspace import Workspace


@contextmanager
def indexed(root: str, now_us: int) -> Iterator[Database]:
    """Yields a database in memory with every derived row of a workspace, here or elsewhere, as of its files alone.

    What this machine knows of a workspace besides (seals, live turns, memories) is not in it: it is the same for every
    reader. No lock is needed, because nothing is shared. Raises `WorkspaceError`, `Unreachable`, `ConfigError`.
    """
    settings, _ = model.load(root)
    # A folder that never exists.
    nowhere = locations.by_path(locations.base(), f"index in memory of {root}")
    with closing(Database(":memory:")) as database:
        workspace = Workspace(root, settings, nowhere, database, touch_nothing=True, own_place=False, pipeline=PIPELINE)
        # The engine has a process for every core.
        run_locked(workspace, Request(now_us, project=False, resume=False, follow_removals=False, workers=0))
        yield database
