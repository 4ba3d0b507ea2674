"""Defines what to select from for rows of nodes and statements with names instead of numbers. Imports nothing heavy."""

from signet_sync.storage.database.derived import path_of as path_of
from signet_sync.storage.database.tables import TABLES

NODES, STATEMENTS = (TABLES[name].rows for name in ("session_summaries", "statements"))
