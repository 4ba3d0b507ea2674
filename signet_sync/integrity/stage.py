"""Deletes expired bytes of seals and recall events, and overwrites the freed database pages."""

from __future__ import annotations

import json

from signet_sync.formats.snapshot import Signature
from signet_sync.formats.timestamps import DAY, iso
from signet_sync.memories.store import promotions
from signet_sync.storage import files
from signet_sync.storage.database import batches
from signet_sync.sync.store import passes, violations
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
    settings, database = workspace.settings, workspace.database
    since = now_us - int(settings.recall_retention_days * DAY) if settings.recall_retention_days else None
    due = []
    if settings.seals_keep_days:
        due = violations.list_older(database, iso(now_us - int(settings.seals_keep_days * DAY)))
    paths = _list_unchanged(workspace, due)
    if paths or (since is not None and promotions.any_before(database, since)):
        with database.transaction():
            violations.drop_bytes(database, paths)
            if since is not None:
                promotions.drop_before(database, since)
            passes.expect(database, "wipe_due")
    # Deleted rows are overwritten in the log and in free space; if a reader prevents it, the next pass tries again.
    if passes.is_due(database, "wipe_due") and database.checkpoint(truncate=True):
        with database.transaction():
            if batches.wipe(database):
                passes.done(database, "wipe_due")
        database.checkpoint(truncate=True)


def _list_unchanged(workspace: Workspace, paths: list[str]) -> list[str]:
    """Returns the paths whose files are unchanged since indexing; of files saved since, the seal has the last copy."""
    rows = workspace.database.execute(
        "select path, size, mtime_ns, ctime_ns, inode from files where path in (select value from json_each(?))",
        (json.dumps(paths),),
    )
    known = {path: Signature(*signature) for path, *signature in rows}
    present = files.signatures(workspace.root, paths)
    return [path for path in paths if path in present and present[path] == known.get(path)]
