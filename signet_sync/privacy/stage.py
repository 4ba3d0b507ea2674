"""Takes in removals of Signet, and scrubs after every removal; the imports for it are loaded only when there is one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from signet_sync.formats.filename import is_artifact_path
from signet_sync.formats.paths import DEFAULT_AGENT, MEMORY, SIGNET_DATABASES
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.memories.store import memories
from signet_sync.pages import conflict_copies, page_files
from signet_sync.pages.store import pages
from signet_sync.storage import files
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Maintenance, Pass, Recovery


class SignetRemovals(Recovery):
    """Removes what Signet removed, in full passes and where artifacts are gone."""

    name = "Signet's removals"

    @contextmanager
    def recover(self, run: Pass) -> Iterator[None]:
        """Writes tombstones for them."""
        if run.request.follow_removals and _may_have_removed(run):
            from signet_sync.privacy import signet_tombstones  # slow import, needed beside Signet only

            signet_tombstones.take_in(run)
        yield


def _may_have_removed(run: Pass) -> bool:
    """Returns whether Signet may have removed something of a vault that may be changed.

    Its database is there, or was and could not be read; the pass covers everything, or artifacts that are gone.
    """
    root, paths = run.workspace.root, run.request.paths
    there = any(os.path.lexists(f"{root}/{path}") for path in SIGNET_DATABASES)
    if not there and not pages.signet_trouble(run.database):
        return False
    if run.workspace.touch_nothing or not os.path.isdir(f"{root}/{MEMORY}"):
        return False
    return paths is None or any(is_artifact_path(path) and not os.path.lexists(f"{root}/{path}") for path in paths)


class ReturnedPages(Maintenance):
    """Finds pages of removed sessions that came back, from a backup or another machine, and marks them for a scrub."""

    name = "returned pages"

    def due(self, run: Pass) -> bool:
        """Returns whether any tombstone exists."""
        return tombstones_store.any_removed(run.database)

    def run(self, run: Pass) -> None:
        """Finds such pages; the scrub follows."""
        database, root = run.database, run.workspace.root
        pages = [(agent_id, raw) for agent_id, _, raw in page_files.strays(run.workspace)]
        for path in conflict_copies.copies(root):
            found = files.read(root, path, PAGE_LIMIT)
            if isinstance(found, Found):
                pages.append((path.split("/")[1] if path.startswith("agents/") else DEFAULT_AGENT, found.raw))
        for agent_id, raw in pages:
            shown = tombstones_store.find_removed(database, agent_id, raw)
            removed = tombstones_store.find_named(database, agent_id, raw).union(*shown.values())
            if removed:
                tombstones_store.reopen(database, agent_id, removed)
            if forgotten := page_files.forgotten_on(database, agent_id, raw):
                with database.transaction(durable=True):
                    memories.scrub_again(database, agent_id, forgotten)


class Scrub(Maintenance):
    """Scrubs after removals, and again if something removed came back."""

    name = "scrub"

    def due(self, run: Pass) -> bool:
        """Returns whether a removal waits for its scrub."""
        return tombstones_store.is_unscrubbed(run.database)

    def run(self, run: Pass) -> None:
        """Runs the scrub."""
        from signet_sync.privacy import scrub  # slow import, needed for removals only

        scrub.scrub(run.workspace, run.request.now_us)
