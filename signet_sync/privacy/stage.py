"""Takes in removals of Signet, and scrubs after every removal; the imports for it are loaded only when there is one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from signet_sync.capture import store as capture_store
from signet_sync.errors import WorkspaceError
from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.filename import is_artifact_path
from signet_sync.formats.ids import token_of
from signet_sync.formats.paths import MEMORY, SIGNET_DATABASES, folder_agent
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.graph.store import nodes
from signet_sync.memories.store import memories
from signet_sync.pages import conflict_copies, page_files
from signet_sync.pages.store.pages import SIGNET_TROUBLE
from signet_sync.statements import word_files
from signet_sync.storage import files
from signet_sync.sync.deriving import publish
from signet_sync.sync.store import passes
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Eraser, Maintenance, Outcome, Pass, Recovery, Request

if TYPE_CHECKING:
    from signet_sync.storage.database.connection import Database


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
    if not there and not run.database.state(*SIGNET_TROUBLE):
        return False
    if run.workspace.touch_nothing or not os.path.isdir(f"{root}/{MEMORY}"):
        return False
    return paths is None or any(is_artifact_path(path) and not os.path.lexists(f"{root}/{path}") for path in paths)


class ReturnedPages(Maintenance):
    """Finds pages of removed sessions that came back, from a backup or another machine, and marks them for a scrub."""

    name = "returned pages"

    def due(self, run: Pass) -> bool:
        """Returns whether any tombstone exists."""
        return tombstones_store.has_removals(run.database)

    def run(self, run: Pass) -> None:
        """Finds such pages; the scrub follows."""
        database, root = run.database, run.workspace.root
        pages = [(agent_id, raw) for agent_id, _, raw in page_files.strays(run.workspace)]
        for path in conflict_copies.copies(root):
            found = files.read(root, path, PAGE_LIMIT)
            if isinstance(found, Found):
                pages.append((folder_agent(path), found.raw))
        for agent_id, raw in pages:
            shown = tombstones_store.find_removed(database, agent_id, raw)
            removed = tombstones_store.find_named(database, agent_id, raw).union(*shown.values())
            if removed:
                tombstones_store.reopen(database, agent_id, removed)
            if forgotten := page_files.find_forgotten(database, agent_id, raw):
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


# ── deletes the words of removed sessions, and what is based on them, while rows still contain them ──


_Gathered = tuple[set[str], dict[tuple[str, str], set[str]]]


class RemovedSessions(Eraser):
    """Deletes removed sessions' words from kept copies, entities and marks, and what is remembered of them."""

    name = "removed sessions"

    def gather(self, run: Pass, removed: Sequence[Tombstone]) -> _Gathered:
        """Cleans kept copies and entities, while rows still contain the words; returns what has to be remembered.

        These are digests of lines that cannot be deleted now, and by agent and token hashes of what only the sessions
        have, by which pages, copies and an undo are recognised.
        """
        from signet_sync.privacy import scrub  # slow import, of all that edits entities; removals are rare

        workspace, database, postponed = run.workspace, run.database, False
        if not workspace.touch_nothing:
            try:
                if not passes.is_halted(database):
                    # Changes in managed blocks are saved to kept copies now, while removed lines can be recognised.
                    pages = Pass(workspace, Request(run.request.now_us), Outcome(full=True))
                    publish(pages, workspace.pipeline.publishers)
                    run.outcome.rewritten |= pages.outcome.rewritten
                    postponed = pages.outcome.deferred
                scrub.clean_kept_copies(workspace, removed)
            except (OSError, WorkspaceError):  # the scrub reports the error
                postponed = True
        lines = scrub.lines_of_removed(workspace, removed) if postponed else set()
        marks = scrub.marks_of_removed(database, removed)
        # Later only paths and names identify what is based on them in entities. A disk error is therefore raised and
        # the pass repeated; a forbidden file is not waited for.
        if not workspace.touch_nothing:
            with suppress(PermissionError, WorkspaceError):
                scrub.clean_entities(workspace, removed, run.request.now_us)
        return lines, marks

    def erase(self, run: Pass, removed: Sequence[Tombstone], gathered: _Gathered) -> Callable[[], None]:
        """Remembers their lines; returns what deletes orphaned marks, and words, once derived rows are up to date."""
        database, (lines, marks) = run.database, gathered
        tombstones_store.remember_lines(database, lines)
        for (agent_id, token), known in marks.items():
            tombstones_store.remember_marks(database, agent_id, token, known)
        orphans = nodes.find_orphans(database, removed, tombstones_store.list_unscrubbed(database))

        def conclude() -> None:
            gone = frozenset(nodes.forget_orphaned_marks(database, orphans))
            word_files.forget(run.workspace, gone)

        return conclude

    def forget(self, database: Database, tombstone: Tombstone, sessions: Sequence[tuple[str, str | None]]) -> int:
        """Deletes what is remembered of removed sessions alone, by whichever of their identities.

        Hides where their transcripts are, not that they were read.
        """
        agent_id, token, ids = tombstone.scope
        hidden = {session_id for session_id, _ in sessions}.union(ids)
        capture_store.hide(database, agent_id, hidden, None if ids else token)
        gone = memories.forget_session(database, agent_id, token, ids)
        others: dict[str, set[str]] = {}
        for session_id, key in sessions:
            for identity in filter(None, (session_id, key)):
                others.setdefault(token_of(agent_id, identity), set()).add(session_id)
        for other, some in others.items():
            gone += memories.forget_session(database, agent_id, other, sorted(some))
        return gone

    def lift(self, database: Database) -> None:
        """Lets a session be captured again after its removal was undone."""
        capture_store.forget_removed(database)

    def sanitize(self, database: Database) -> None:
        """Sanitizes the rows of captures."""
        capture_store.redact(database)
