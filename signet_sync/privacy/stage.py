"""Scrubs after every removal; the scrub's imports are loaded only when there is one."""

from __future__ import annotations

from signet_sync.sync.request import Pass
from signet_sync.sync.stages import Maintenance
from signet_sync.sync.tombstones import store as tombstones_store


class ReturnedPages(Maintenance):
    """Finds pages of removed sessions that came back, from a backup or another machine, and marks them for a scrub."""

    name = "returned pages"

    def due(self, run: Pass) -> bool:
        """Returns whether any tombstone exists."""
        return tombstones_store.any_removed(run.database)

    def run(self, run: Pass) -> None:
        """Finds such pages; the scrub follows."""
        from signet_sync.privacy import scrub  # slow import, needed for removals only

        scrub.find_returned_pages(run.workspace)


class Scrub(Maintenance):
    """Scrubs after removals, and again if something removed came back."""

    name = "scrub"

    def due(self, run: Pass) -> bool:
        """Returns whether a removal waits for its scrub."""
        return tombstones_store.unscrubbed(run.database)

    def run(self, run: Pass) -> None:
        """Runs the scrub."""
        from signet_sync.privacy import scrub  # slow import, needed for removals only

        scrub.scrub(run.workspace, run.request.now_us)
