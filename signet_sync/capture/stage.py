"""Has marks of captured sessions follow removals and the sanitizer."""

from __future__ import annotations

from signet_sync.capture import store as capture_store
from signet_sync.storage.database.connection import Database
from signet_sync.sync.stages import Eraser


class Captures(Eraser):
    """Keeps marks of captured sessions true."""

    name = "captures"

    def lift(self, database: Database) -> None:
        """Has a session whose removal was undone captured again."""
        capture_store.forget_removed(database)

    def sanitize(self, database: Database) -> None:
        """Sanitizes what marks say."""
        capture_store.redact(database)
