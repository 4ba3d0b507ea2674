"""Scrubs after every removal; the scrub's imports are loaded only when there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from signet_sync.errors import WorkspaceError
from signet_sync.sync.request import Pass
from signet_sync.sync.stages import Eraser, Maintenance
from signet_sync.sync.tombstones import store as tombstones_store

if TYPE_CHECKING:
    from signet_sync.formats.artifact import Tombstone


class RemovedWords(Eraser):
    """Deletes removed sessions' words from kept copies, queries and marks, while rows still contain them."""

    name = "removed words"

    def gather(self, run: Pass, removed: Sequence[Tombstone]) -> tuple[set[str], set[str]]:
        """Cleans kept copies; returns queries, and digests of lines that cannot be deleted now."""
        from signet_sync.privacy import scrub  # slow import, needed for removals only

        return scrub.gather(run, removed)

    def erase(self, run: Pass, removed: Sequence[Tombstone], gathered: tuple[set[str], set[str]]) -> Callable[[], None]:
        """Deletes queries and marks; returns what deletes orphaned marks once derived rows are up to date."""
        from signet_sync.graph.store import marks  # as above
        from signet_sync.memories.store import recall_events

        database, (queries, lines) = run.database, gathered
        recall_events.forget_queries(database, queries)
        tombstones_store.remember_lines(database, lines)
        orphans = marks.forget_marks(database, removed)
        return lambda: marks.forget_orphaned_marks(database, orphans)


class RemovedEvidence(Eraser):
    """Deletes from entities what is based on removed sessions, while rows still contain their words."""

    name = "removed evidence"

    def gather(self, run: Pass, removed: Sequence[Tombstone]) -> None:
        """Cleans the entity files and their event logs."""
        from signet_sync.privacy import scrub  # slow import, needed for removals only

        # Later only paths and names identify it. A disk error is therefore raised and the pass repeated; a forbidden
        # file is not waited for.
        if not run.workspace.touch_nothing:
            with suppress(PermissionError, WorkspaceError):
                scrub.clean_entities(run.workspace, removed, run.request.now_us)


class ReturnedPages(Maintenance):
    """Finds pages of removed sessions that came back, from a backup or another machine, and marks them for a scrub."""

    name = "returned pages"

    def due(self, run: Pass) -> bool:
        """Whether any tombstone exists."""
        return tombstones_store.any_stand(run.database)

    def run(self, run: Pass) -> None:
        """Finds such pages; the scrub follows."""
        from signet_sync.privacy import scrub  # slow import, needed for removals only

        scrub.find_returned_pages(run.workspace)


class Scrub(Maintenance):
    """Scrubs after removals, and again if something removed came back."""

    name = "scrub"

    def due(self, run: Pass) -> bool:
        """Whether a removal waits for its scrub."""
        return tombstones_store.unscrubbed(run.database)

    def run(self, run: Pass) -> None:
        """Runs the scrub."""
        from signet_sync.privacy import scrub  # slow import, needed for removals only

        scrub.scrub(run.workspace, run.request.now_us)
