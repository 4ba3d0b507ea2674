"""Writes the files that follow from rows, and takes in what the pass has written itself: its own writes are no news."""

from __future__ import annotations

from collections.abc import Iterable

from signet_sync.errors import LeaseBusy, SignetSyncError, reason
from signet_sync.sync.request import Pass
from signet_sync.sync.stages import Publisher


def publish(run: Pass, publishers: Iterable[Publisher]) -> None:
    """Publishes what is stale; one that cannot be written now does not hold up the others."""
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
