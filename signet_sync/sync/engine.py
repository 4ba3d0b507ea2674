"""Runs a pass: recover, index, derive, maintain, publish; the watcher, timer, command line and CI all use it.

A pass after a crash is an ordinary pass: it looks at the disk and does what is left to do. No feature is named here;
their stages are registered in the workspace's pipeline. A command replaces a damaged database and runs the pass again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import apsw

from signet_sync.errors import DatabaseCorrupt, DatabaseError, SignetSyncError, place_of
from signet_sync.storage import state_dir
from signet_sync.storage.database import batches
from signet_sync.storage.database.connection import is_odd, translate
from signet_sync.storage.database.tables import native_tables
from signet_sync.sync import deriving
from signet_sync.sync.database import examine, put_aside, reopen
from signet_sync.sync.deriving import publish
from signet_sync.sync.index_records import Change
from signet_sync.sync.indexing import index, record
from signet_sync.sync.reading import BULK_FROM
from signet_sync.sync.store import passes
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Outcome, Pass, Request, Workspace

# With fewer rows in the outbox, all are processed at once, whatever the age of their sessions.
FEW_SOURCES = 1_000


def run_pass(workspace: Workspace, request: Request) -> Outcome:
    """Runs a pass over everything or over given paths. Raises `WorkspaceError`, `DatabaseError`, `Interrupted`."""
    with state_dir.workspace_lock(workspace.state, request.patience):
        return run_locked(workspace, request)


def run_locked(workspace: Workspace, request: Request) -> Outcome:
    """Runs a pass; the caller holds the workspace's lock."""
    started = time.perf_counter()
    pipeline = workspace.pipeline
    run = Pass(workspace, request)
    database = workspace.database
    if request.paths is not None and (deriving.stale(database, pipeline) or passes.get(database, "unread")):
        # No full pass has ended since the database was created or an upgrade emptied its tables: pages made from a few
        # paths would hide everything else.
        run.request = request._replace(paths=None)
    if workspace.unshown is not None and request.project and not passes.get(database, "pages_due"):
        with database.transaction():  # before the rows that the pages will wait for
            passes.put(database, "pages_due", 1)
    with ExitStack() as recovered:
        for recovery in pipeline.recoveries:
            recovered.enter_context(recovery.recover(run))
        read = 0
        while True:  # a first index in parts
            index(run)
            _derive(run)
            if not run.outcome.unread or run.outcome.read == read:  # `memory/` is gone, say: the next pass goes on
                break
            publish(run, (publisher for publisher in pipeline.publishers if publisher.early))
            _record(run)
            read = run.outcome.read
            run.outcome.change.sources.clear()
        if not run.outcome.unread:
            if run.outcome.read > BULK_FROM:
                batches.merge_all(database)
            run.request.go_on()
            for stage in pipeline.maintenance.load(full=run.outcome.full) if run.outcome.cliff is None else ():
                if (stage.database_only or not workspace.touch_nothing) and stage.due(run):
                    stage.run(run)
            if run.outcome.cliff is None:
                _record(run)
            publish(run, pipeline.publishers)
            _record(run)
            if run.outcome.whole:
                _remember(run)
    run.outcome.elapsed_ms = (time.perf_counter() - started) * 1000
    return run.outcome


@contextmanager
def defer_pages(workspace: Workspace, now_us: Callable[[], int]) -> Iterator[None]:
    """Publishes pages once for many passes over some paths, not after each; for one that was killed, by a full pass."""
    killed = passes.get(workspace.database, "pages_due")
    workspace.unshown = Change()
    try:
        yield
    finally:
        change, workspace.unshown = workspace.unshown, None
        if killed:
            workspace.events += run_pass(workspace, Request(now_us())).trouble
        elif change.agents or change.days:
            with state_dir.workspace_lock(workspace.state, Request(0).patience):
                run = Pass(workspace, Request(now_us(), frozenset()), Outcome(change=change))
                publish(run, workspace.pipeline.publishers)
                _record(run)
                workspace.events += run.outcome.trouble
                with workspace.database.transaction():
                    passes.put(workspace.database, "pages_due", 0)


def index_paths(workspace: Workspace, request: Request) -> None:
    """Indexes some paths without recovery and pages; the caller holds the workspace's lock."""
    run = Pass(workspace, request)
    index(run)
    _derive(run)


def work_off(workspace: Workspace, request: Request) -> bool:
    """Processes one batch of what a pass left in the outbox; returns whether more is left.

    Raises `WorkspaceError` (`busy`), `DatabaseError`.
    """
    with state_dir.workspace_lock(workspace.state, request.patience):
        deriving.drain(workspace.database, workspace.pipeline, batches=1, alive=partial(request.alive, 1))
        return passes.has_waiting(workspace.database)


def _derive(run: Pass) -> None:
    """Processes the outbox, including what a killed pass left in it; before a scrub all of it."""
    database = run.database
    if run.outcome.cliff is not None or not passes.has_waiting(database):
        return
    at_once = not passes.has_waiting(database, FEW_SOURCES) or tombstones_store.is_unscrubbed(database)
    run.outcome.change.add(
        deriving.drain(
            database,
            run.workspace.pipeline,
            since_us=0 if at_once else run.request.since_us,
            alive=partial(run.request.alive, run.outcome.read),
        )
    )


def _record(run: Pass) -> None:
    """Indexes what the pass itself has written, so that no later pass finds it as new."""
    written, run.outcome.rewritten = run.outcome.rewritten, set()
    try:
        record(run, written)
        _derive(run)
    except SignetSyncError as error:
        run.outcome.trouble.append(error.message)


def _remember(run: Pass) -> None:
    """Records that everything was looked at, and when."""
    workspace = run.workspace
    over: list[passes.Fact] = ["halted"]
    if not (workspace.touch_nothing or run.outcome.deferred):
        over += ["manifests_due", "pages_due"] if run.request.project else ["manifests_due"]
    if any(passes.get(run.database, what) for what in over):
        with run.database.transaction():
            for what in over:
                passes.put(run.database, what, None if what == "halted" else 0)
    if workspace.touch_nothing and not workspace.own_place:
        return  # a copy for CI must not change the state of the workspace's own index
    os.makedirs(workspace.state.path, mode=0o700, exist_ok=True)
    with suppress(OSError):
        state_dir.write_json(os.path.join(workspace.state.path, "last-pass.json"), {"last_full_pass": run.now_iso})


def run_pass_mending(workspace: Workspace, request: Request) -> Outcome:
    """Runs a pass, if necessary over a new database.

    A rebuild first checks every page of the database, and closely the tables that are not derived.
    """
    try:
        with state_dir.workspace_lock(workspace.state, request.patience):
            if request.rebuild:
                examine(workspace.database, native_tables())
            return run_locked(workspace, request)
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
        put_aside(workspace, damage)
        reopen(workspace)
    return run_pass(workspace, request)


def _damage(workspace: Workspace, error: apsw.Error | DatabaseError) -> DatabaseCorrupt | None:
    """Returns the damage that an error reveals, by itself or after a check of every page."""
    found = translate(error, workspace.database.path) if isinstance(error, apsw.Error) else error
    if isinstance(found, DatabaseCorrupt):
        return found
    if is_odd(error):
        try:
            examine(workspace.database)
        except DatabaseCorrupt as damaged:
            return damaged
    return None
