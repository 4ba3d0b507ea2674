"""Checks that the rows of statements belong together."""

from __future__ import annotations

from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import STATEMENTS


def orphans(database: Database) -> int:
    """Counts statements without an artifact, ids without exactly one newest row, and `recall` lines of what is over."""
    return sum(
        int(database.value(f"select count(*) from {what}"))
        for what in (
            f"{STATEMENTS} where source_path is null",
            "(select 1 from statements group by agent_id, id having sum(newest) <> 1)",
            "texts l where l.tier = 'statement' and not exists (select 1 from statements s"
            " where s.agent_id = l.agent_id and s.id = l.name and s.newest = 1 and s.status = 'open')",
        )
    )
