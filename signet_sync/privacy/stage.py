"""Has every removal followed by its scrub; what a scrub needs is loaded when there is one."""

from __future__ import annotations

from signet_sync.sync.request import Pass
from signet_sync.sync.stages import Maintenance
from signet_sync.sync.tombstones import store as tombstones_store


class ReturnedPages(Maintenance):
    """Has pages scrubbed that came back, from a backup or another machine, and tell of a removed session."""

    name = "returned pages"

    def due(self, run: Pass) -> bool:
        """Says whether anything was removed."""
        return tombstones_store.any_stand(run.database)

    def run(self, run: Pass) -> None:
        """Looks for them; the scrub comes after it."""
        from signet_sync.privacy import scrub  # heavy, and for removals alone

        scrub.seek_returned(run.workspace)


class Scrub(Maintenance):
    """Scrubs after removals, and again where something of one came back."""

    name = "scrub"

    def due(self, run: Pass) -> bool:
        """Says whether a removal waits for its scrub."""
        return tombstones_store.unscrubbed(run.database)

    def run(self, run: Pass) -> None:
        """Scrubs."""
        from signet_sync.privacy import scrub  # heavy, and for removals alone

        scrub.scrub(run.workspace, run.now_iso)
