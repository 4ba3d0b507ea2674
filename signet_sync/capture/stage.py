"""Updates records of captured transcripts after removals and changes of the sanitizer."""

from __future__ import annotations

from signet_sync.capture import store as capture_store
from signet_sync.storage.database.connection import Database
from signet_sync.sync.stages import Eraser


class Captures(Eraser):
    """Keeps the captures table in step with removals and redactions."""

    name = "captures"

    def lift(self, database: Database) -> None:
        """Lets a session be captured again after its removal was undone."""
        capture_store.forget_removed(database)

    def sanitize(self, database: Database) -> None:
        """Sanitizes the rows."""
        capture_store.redact(database)
