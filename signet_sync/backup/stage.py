"""Writes a backup of native rows if they changed since the last one."""

from __future__ import annotations

from signet_sync.sync.request import Pass
from signet_sync.sync.stages import Maintenance
from signet_sync.sync.tombstones import store as tombstones_store
from signet_sync.sync.workspace import back_up


class Backup(Maintenance):
    """Backs up native rows."""

    name = "backup"

    def due(self, run: Pass) -> bool:
        """Returns whether a backup may be written: until a scrub is complete, a backup could contain removed words."""
        return not tombstones_store.is_unscrubbed(run.database)

    def run(self, run: Pass) -> None:
        """Writes a backup if native rows changed."""
        back_up(run.workspace, run.now_iso)
