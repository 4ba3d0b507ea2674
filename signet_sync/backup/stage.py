"""Writes a backup of native rows when they moved since the last one."""

from __future__ import annotations

from signet_sync.sync.request import Pass
from signet_sync.sync.stages import Maintenance
from signet_sync.sync.tombstones import store as tombstones_store
from signet_sync.sync.workspace import back_up


class Backup(Maintenance):
    """Backs native rows up."""

    name = "backup"

    def due(self, run: Pass) -> bool:
        """Says whether one may be written: a scrub that could not end must not leave its words in one."""
        return not tombstones_store.unscrubbed(run.database)

    def run(self, run: Pass) -> None:
        """Writes it where native rows moved."""
        back_up(run.workspace, run.now_iso)
