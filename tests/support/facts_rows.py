"""Checks that the rows of facts belong together."""

from __future__ import annotations

from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import FACTS


def orphans(database: Database) -> int:
    """Counts facts and topics without an artifact, and `recall` lines of facts that are not active."""
    return sum(
        int(database.value(f"select count(*) from {what}"))
        for what in (
            f"entity_attributes where id not in (select id from {FACTS})",
            "entities e where not exists (select 1 from entity_mentions m where m.entity = e.entity)",
            "texts l where l.tier = 'fact' and not exists (select 1 from entity_attributes a"
            " where a.agent_id = l.agent_id and a.id = l.name and a.status = 'active')",
        )
    )
