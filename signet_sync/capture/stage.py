"""Updates records of captured transcripts after removals and changes of the sanitizer."""

from __future__ import annotations

from collections.abc import Sequence

from signet_sync.capture import store as capture_store
from signet_sync.formats.artifact import Tombstone
from signet_sync.storage.database.connection import Database
from signet_sync.sync.stages import Eraser


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
