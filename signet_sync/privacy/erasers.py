"""Deletes the words of removed sessions, and what is based on them, while rows still contain them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from signet_sync.capture import store as capture_store
from signet_sync.errors import WorkspaceError
from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.ids import token_of
from signet_sync.graph import words
from signet_sync.graph.store import nodes
from signet_sync.memories.store import memories
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Eraser, Pass

if TYPE_CHECKING:
    from signet_sync.privacy import scrub
    from signet_sync.storage.database.connection import Database


class RemovedSessions(Eraser):
    """Deletes removed sessions' words from kept copies, entities and marks, and what is remembered of them."""

    name = "removed sessions"

    def gather(self, run: Pass, removed: Sequence[Tombstone]) -> scrub.RemovedTexts:
        """Cleans kept copies and entities, while rows still contain the words; returns what else these are in."""
        from signet_sync.privacy import scrub  # slow import, of all that edits entities; removals are rare

        found = scrub.gather(run, removed)
        # Later only paths and names identify what is based on them in entities. A disk error is therefore raised and
        # the pass repeated; a forbidden file is not waited for.
        if not run.workspace.touch_nothing:
            with suppress(PermissionError, WorkspaceError):
                scrub.clean_entities(run.workspace, removed, run.request.now_us)
        return found

    def erase(self, run: Pass, removed: Sequence[Tombstone], gathered: scrub.RemovedTexts) -> Callable[[], None]:
        """Remembers their lines; returns what deletes orphaned marks, and words, once derived rows are up to date."""
        database = run.database
        tombstones_store.remember_lines(database, gathered.lines)
        for (agent_id, token), known in gathered.marks.items():
            tombstones_store.remember_marks(database, agent_id, token, known)
        orphans = nodes.find_orphans(database, removed, tombstones_store.pending(database))
        about = words.about_removed(run.workspace, removed)

        def conclude() -> None:
            gone = frozenset(nodes.forget_orphaned_marks(database, orphans))
            words.forget(run.workspace, about, gone)

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
        others.pop(token, None)
        for other, some in others.items():
            gone += memories.forget_session(database, agent_id, other, sorted(some))
        return gone

    def lift(self, database: Database) -> None:
        """Lets a session be captured again after its removal was undone."""
        capture_store.forget_removed(database)

    def sanitize(self, database: Database) -> None:
        """Sanitizes the rows of captures."""
        capture_store.redact(database)
