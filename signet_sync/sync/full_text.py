"""Rebuilds full text that is out of step with its rows, since an incomplete index hides existing results."""

from __future__ import annotations

from signet_sync.sync.request import Pass
from signet_sync.sync.stages import Maintenance
from signet_sync.sync.store import artifacts, texts


class FullText(Maintenance):
    """Compares full text with its rows."""

    name = "full text"
    database_only = True

    def run(self, run: Pass) -> None:
        """Rebuilds what is out of step."""
        if not texts.in_step(run.database):
            with run.database.transaction():
                texts.rebuild(run.database, artifacts.every_row(run.database))
            run.workspace.events.append("full text was out of step with its rows and is built anew")
