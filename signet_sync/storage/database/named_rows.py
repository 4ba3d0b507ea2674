"""Rows of nodes and facts with the names that their numbers stand for, to be selected from. Imports nothing heavy."""

from signet_sync.storage.database.tables import TABLES

NODES, FACTS, SOURCES, MENTIONS, RELATIONS = (
    TABLES[name].rows
    for name in ("session_summaries", "entity_attributes", "attribute_sources", "entity_mentions", "relations")
)
