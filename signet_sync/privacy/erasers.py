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
from signet_sync.graph.store import marks
from signet_sync.memories.store import memories
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Eraser, Pass

if TYPE_CHECKING:
    from signet_sync.privacy import scrub
    from signet_sync.storage.database.connection import Database


class RemovedWords(Eraser):
    """Deletes removed sessions' words from kept copies and marks, while rows still contain them."""

    name = "removed words"

    def gather(self, run: Pass, removed: Sequence[Tombstone]) -> scrub.RemovedTexts:
        """Cleans kept copies; returns what else the sessions' words are in."""
        from signet_sync.privacy import scrub  # slow import, of all that edits entities; removals are rare

        return scrub.gather(run, removed)

    def erase(self, run: Pass, removed: Sequence[Tombstone], gathered: scrub.RemovedTexts) -> Callable[[], None]:
        """Remembers their lines; returns what deletes orphaned marks, and words, once derived rows are up to date."""
        database = run.database
        tombstones_store.remember_lines(database, gathered.lines)
        for (agent_id, token), ids in gathered.handles.items():
            tombstones_store.remember(database, agent_id, token, ids)
        for (agent_id, token), marks_of_prompts in gathered.prompts.items():
            tombstones_store.remember_marks(database, agent_id, token, marks_of_prompts)
        orphans, about = marks.find_orphans(database, removed), words.about_removed(run.workspace, removed)

        def conclude() -> None:
            gone = frozenset(marks.forget_orphaned_marks(database, orphans))
            words.forget(run.workspace, about, gone)

        return conclude


class RemovedEvidence(Eraser):
    """Deletes from entities what is based on removed sessions, while rows still contain their words."""

    name = "removed evidence"

    def gather(self, run: Pass, removed: Sequence[Tombstone]) -> None:
        """Cleans the entity files and their event logs."""
        # Later only paths and names identify it. A disk error is therefore raised and the pass repeated; a forbidden
        # file is not waited for.
        if not run.workspace.touch_nothing:
            from signet_sync.privacy import scrub  # as above

            with suppress(PermissionError, WorkspaceError):
                scrub.clean_entities(run.workspace, removed, run.request.now_us)


class RemovedMemories(Eraser):
    """Deletes what is remembered of removed sessions."""

    name = "memories"

    def forget(self, database: Database, tombstone: Tombstone, sessions: Sequence[tuple[str, str | None]]) -> int:
        """Deletes what is remembered of removed sessions alone, by whichever of their identities."""
        gone = memories.forget_session(database, tombstone.agent_id, tombstone.session_token, tombstone.session_ids)
        others: dict[str, set[str]] = {}
        for session_id, key in sessions:
            for identity in filter(None, (session_id, key)):
                others.setdefault(token_of(tombstone.agent_id, identity), set()).add(session_id)
        others.pop(tombstone.session_token, None)
        for token, ids in others.items():
            gone += memories.forget_session(database, tombstone.agent_id, token, sorted(ids))
        return gone


class Captures(Eraser):
    """Keeps the captures table in step with removals and redactions."""

    name = "captures"

    def forget(self, database: Database, tombstone: Tombstone, sessions: Sequence[tuple[str, str | None]]) -> int:
        """Hides where the transcripts are, not that they were read."""
        ids = {session_id for session_id, _ in sessions}.union(tombstone.session_ids)
        capture_store.hide(
            database, tombstone.agent_id, ids, None if tombstone.session_ids else tombstone.session_token
        )
        return 0

    def lift(self, database: Database) -> None:
        """Lets a session be captured again after its removal was undone."""
        capture_store.forget_removed(database)

    def sanitize(self, database: Database) -> None:
        """Sanitizes the rows."""
        capture_store.redact(database)
