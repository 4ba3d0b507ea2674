"""Deletes expired recall events, and overwrites the freed database pages."""

from __future__ import annotations

from signet_sync.formats.timestamps import DAY
from signet_sync.memories.store import promotions
from signet_sync.storage.database import batches
from signet_sync.sync.store import passes
from signet_sync.sync.workspace import Maintenance, Pass, Workspace


class Retention(Maintenance):
    """Deletes what is kept only for a time."""

    name = "retention"

    def run(self, run: Pass) -> None:
        """Deletes what has expired."""
        enforce(run.workspace, run.request.now_us)


def enforce(workspace: Workspace, now_us: int) -> None:
    """Deletes what has expired; writes nothing if nothing has. After a crash the next full pass completes it.

    Raises `DatabaseError`.
    """
    days, database = workspace.settings.recall_retention_days, workspace.database
    since = now_us - int(days * DAY)
    if days and (oldest := promotions.first_at(database)) is not None and oldest < since:
        with database.transaction():
            promotions.drop_before(database, since)
            passes.put(database, "wipe_due", 1)
    # Deleted rows are overwritten in the log and in free space; if a reader prevents it, the next pass tries again.
    if passes.get(database, "wipe_due") and database.checkpoint(truncate=True):
        with database.transaction():
            if batches.wipe(database):
                passes.put(database, "wipe_due", 0)
        database.checkpoint(truncate=True)
