"""Migrates from Signet, reports beforehand what would come, and takes back what came."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from tempfile import TemporaryFile

from signet_sync.errors import Halted
from signet_sync.formats.artifact import Tombstone
from signet_sync.memories import operations as memories_operations
from signet_sync.migration import signet_database, store
from signet_sync.migration.report import Report
from signet_sync.migration.signet import SignetMigration
from signet_sync.privacy import signet_tombstones
from signet_sync.storage import state_dir
from signet_sync.sync import engine
from signet_sync.sync.request import Outcome, Request
from signet_sync.sync.tombstones import files as tombstones_files
from signet_sync.sync.tombstones import store as tombstones_store
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrases import counted


def preview(workspace: Workspace, path: str, now_us: int) -> Report:
    """Reports what would be brought from the database at a path; writes nothing. Raises `HarnessError`."""
    report = Report(path, dry_run=True)
    with signet_database.opened(path) as signet, TemporaryFile() as aside:
        migration = SignetMigration(workspace, signet, report, now_us, aside)
        _note_removed(report, _covered(workspace, migration.removals()))
        migration.bring()
    return report


def migrate(
    workspace: Workspace,
    path: str,
    now_us: int,
    *,
    confirm: Callable[[int], None] = lambda removed: None,
    accept_removals: bool = False,
) -> Report:
    """Brings what is not here yet from the database at a path. Ended early, it is finished by the same call.

    `confirm` is called if sessions that are here are about to be removed, with their number, and may raise.
    Raises `HarnessError`, `Halted`, `WorkspaceError`, `DatabaseError`.
    """
    report = Report(path, dry_run=False)
    with signet_database.opened(path) as signet:
        # What Signet removed is confirmed first.
        require_whole(engine.run_pass(workspace, Request(now_us=now_us, follow_removals=False)))
        migration = SignetMigration(workspace, signet, report, now_us)
        tombstones = migration.removals()
        covered = _covered(workspace, tombstones)
        if covered:
            if not accept_removals:
                _require_few(workspace, tombstones, path)
            confirm(covered)
        _note_removed(report, covered)
        _enforce(workspace, tombstones, now_us)
        migration.bring()
        for agent_id in sorted(migration.memories.agents):
            with state_dir.workspace_lock(workspace.state):
                waiting = memories_operations.settle(workspace, agent_id, now_us)
            report.notes += [waiting] if waiting else []
    return report


def _enforce(workspace: Workspace, tombstones: Sequence[Tombstone], now_us: int) -> None:
    """Removes the sessions that some tombstones cover. Ended early, the next pass finishes what it has begun."""
    if not tombstones:
        return
    with state_dir.workspace_lock(workspace.state):
        for one in tombstones:
            tombstones_files.put(workspace.root, one)
        with workspace.database.transaction(durable=True):
            tombstones_store.mirror(workspace.database, tombstones)
        require_whole(engine.run_locked(workspace, Request(now_us=now_us)))


def _covered(workspace: Workspace, tombstones: Sequence[Tombstone]) -> int:
    """Counts the sessions that are here and that some tombstones cover."""
    tokens = {(one.agent_id, one.session_token) for one in tombstones}
    return sum(not tokens.isdisjoint(store.identities(ref)) for ref in store.sessions(workspace.database))


def _require_few(workspace: Workspace, tombstones: Sequence[Tombstone], path: str) -> None:
    """Halts if most of the vault would be removed: the database may be damaged, or another workspace's."""
    cliff = signet_tombstones.cliff_of(workspace, tombstones)
    if cliff is not None:
        raise Halted(
            f"{cliff.message}; nothing was brought",
            path=path,
            hint="is it the database of this workspace? if they are to be removed: --accept-removals",
        )


def require_whole(outcome: Outcome) -> None:
    """Raises `Halted` if a pass was halted."""
    if outcome.cliff is not None:
        raise Halted(
            f"passes are halted: {outcome.cliff.message}; nothing was brought",
            hint="bring the files back, or first: signet-sync reindex --accept-removals",
        )


def _note_removed(report: Report, covered: int) -> None:
    if covered:
        what = "to be removed" if report.dry_run else "removed"
        report.notes.append(f"{what} here, as in Signet: {counted(covered, 'session')}")
