"""Publishes the files that are composed from rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from signet_sync.errors import LeaseBusy, SignetSyncError, reason
from signet_sync.sync.request import Outcome, Pass, Request
from signet_sync.sync.stages import Change, Publisher
from signet_sync.sync.workspace import Workspace


def publish(run: Pass, publishers: Iterable[Publisher]) -> None:
    """Publishes what is stale; a file that cannot be written now does not hold up the others."""
    for publisher in publishers:
        for key in publisher.stale(run):
            try:
                publisher.publish(run, key)
            except LeaseBusy as busy:
                run.outcome.deferred = True
                run.outcome.trouble.append(busy.message)
            except (OSError, SignetSyncError) as error:
                run.outcome.deferred = True
                path = (error.path if isinstance(error, SignetSyncError) else None) or key
                run.outcome.trouble.append(f"{path}: the page could not be written: {reason(error)}")


def publish_pages(workspace: Workspace, *, agents: Collection[str] | None, now_us: int) -> Outcome:
    """Makes the files of some agents, or of all (None), equal to the rows; the caller holds the workspace's lock."""
    outcome = Outcome(full=agents is None, change=Change(agents=set(agents or ())))
    publish(
        Pass(workspace, Request(now_us, None if agents is None else frozenset()), outcome),
        workspace.pipeline.publishers,
    )
    return outcome
