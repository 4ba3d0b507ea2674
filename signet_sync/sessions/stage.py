"""Keeps live turns equal to their files, and finishes write flows; modules load only if there are any."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from signet_sync.errors import RevisionConflict, WorkspaceError
from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.paths import MEMORY
from signet_sync.sessions import journal
from signet_sync.sessions.live import files as live_files
from signet_sync.storage import files
from signet_sync.sync.database import back_up
from signet_sync.sync.store import counts
from signet_sync.sync.workspace import Eraser, Pass, Recovery, Workspace

if TYPE_CHECKING:
    from signet_sync.sessions.flow import Flow
    from signet_sync.storage.database.connection import Database


class LiveTurns(Recovery, Eraser):
    """Makes the rows of live turns follow their files, and deletes the files of removed sessions."""

    name = "live turns"

    @contextmanager
    def recover(self, run: Pass) -> Iterator[None]:
        """Makes rows and files agree."""
        workspace = run.workspace
        try:
            if not (workspace.touch_nothing or live_files.is_settled(workspace.database, workspace.state.live)):
                from signet_sync.sessions.live import operations as live  # imports the sanitizer

                live.settle(workspace)
        except OSError as error:
            workspace.events.append(f"live turns cannot be read or written now, the next pass tries again: {error}")
        yield

    def erase(self, run: Pass, removed: Sequence[Tombstone], gathered: Any) -> None:
        """Deletes the files, while the rows that name them still exist."""
        from signet_sync.sessions.live import operations as live  # as above

        live.forget_removed(run.workspace, removed)

    def forget(self, database: Database, tombstone: Tombstone, sessions: Sequence[tuple[str, str | None]]) -> int:
        """Deletes the rows, and recorded answers of the sessions' flows."""
        from signet_sync.sessions.live import operations as live  # as above

        live.forget_removed_rows(database, tombstone, sessions)
        return 0


class UnfinishedFlows(Recovery):
    """Finishes write flows whose caller died."""

    name = "write flows"

    @contextmanager
    def recover(self, run: Pass) -> Iterator[None]:
        """Advances the flows as far as they get without rows, and to their ends once the pass has made these."""
        workspace = run.workspace
        begun: list[Flow] = []
        if run.request.resume and not workspace.touch_nothing and not _is_away(run):
            from signet_sync.sessions import flow as sessions_flow  # slow to load, and nearly always there is no flow

            begun = [flow for flow in sessions_flow.resume(workspace) if _go_on_with(workspace, flow)]
        run.look_at(path for flow in begun for path in flow.paths)
        try:
            yield
            if run.outcome.cliff is None:
                for flow in begun:
                    flow.reconciled = True
                    _go_on_with(workspace, flow)
                if begun and run.outcome.full:
                    back_up(workspace, run.now_iso)  # the flows' answers are newer than the pass's backup
        finally:
            for flow in begun:
                flow.held.release()


def _is_away(run: Pass) -> bool:
    """Returns True if no flow waits, or if the vault's files are away and that was not accepted.

    The first file written into a missing folder would hide the loss from the cliff check.
    """
    if not journal.keys(run.workspace.state.journal):
        return True
    away = not any(map(artifact_name, files.list_names(run.workspace.root, MEMORY, "")))
    return away and not run.request.accept_removals and counts.count_indexed(run.database) > 0


def _go_on_with(workspace: Workspace, flow: Flow) -> bool:
    """Advances a flow; one that cannot continue now is left to the next pass and does not stop this one."""
    from signet_sync.sessions import flow as sessions_flow  # as above

    try:
        sessions_flow.advance(workspace, flow)
    except (OSError, WorkspaceError, RevisionConflict) as error:
        workspace.events.append(f"a write flow could not be finished, the next pass tries again: {error}")
        flow.held.release()
        return False
    return True
