"""Publishes the files that are composed from rows."""

from __future__ import annotations

from collections.abc import Iterable

from signet_sync.errors import LeaseBusy, SignetSyncError, reason
from signet_sync.sync.request import Pass
from signet_sync.sync.stages import Publisher


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
