"""Runs a pass for a command; if the database is damaged, replaces it and runs the pass again."""

from __future__ import annotations

import apsw

from signet_sync.errors import DatabaseCorrupt, DatabaseError, place_of
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import is_odd, translate
from signet_sync.storage.database.tables import native_tables
from signet_sync.sync.engine import run_pass
from signet_sync.sync.request import Outcome, Request
from signet_sync.sync.workspace import Workspace


def run_pass_mending(workspace: Workspace, request: Request) -> Outcome:
    """Runs a pass, if necessary over a new database.

    A rebuild first checks every page of the database, and closely the tables that are not derived.
    """
    try:
        if request.rebuild:
            with state_dir.workspace_lock(workspace.state, request.patience):
                workspace.examine(native_tables())
        return run_pass(workspace, request)
    except (apsw.Error, DatabaseError) as error:
        damage = _damage(workspace, error)
        if damage is None:
            raise
    except (ValueError, TypeError, LookupError) as error:
        # A flipped bit inside a value shows in no check of the database; derived rows can be rebuilt.
        if request.rebuild:
            raise
        workspace.events.append(f"rows were not as they were written ({place_of(error)}); all are made anew")
        return run_pass_mending(workspace, request._replace(rebuild=True))
    with state_dir.workspace_lock(workspace.state):
        workspace.exchange_damaged(damage)
    return run_pass(workspace, request)


def _damage(workspace: Workspace, error: apsw.Error | DatabaseError) -> DatabaseCorrupt | None:
    """Returns the damage that an error reveals, by itself or after a check of every page."""
    found = translate(error, workspace.database.path) if isinstance(error, apsw.Error) else error
    if isinstance(found, DatabaseCorrupt):
        return found
    if is_odd(error):
        try:
            workspace.examine()
        except DatabaseCorrupt as damaged:
            return damaged
    return None
