"""Dumps the rows of an index, to compare it with a rebuild; for benchmarks and tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import Table
from signet_sync.storage.database.tables import TABLES
from signet_sync.sync.store.texts import text_of


def dumped() -> tuple[Table, ...]:
    """Lists the tables of the canonical dump."""
    return tuple(table for table in TABLES.values() if table.key)


def canonical_dump(database: Database) -> list[tuple[Any, ...]]:
    """Returns every derived row in a fixed order, without machine-local columns; two rebuilds must give equal dumps."""
    dump: list[tuple[Any, ...]] = []
    for table in dumped():
        dump.extend((table.name, *row) for row in sorted_rows(database, table))
    return dump


def sorted_rows(database: Database, table: Table) -> Iterator[tuple[Any, ...]]:
    """Yields the rows of a table in key order, with names instead of numbers, without local columns."""
    stored = database.execute("select name from pragma_table_info(?)", (table.name,))
    named = table.joined.names if table.joined else [name for (name,) in stored]
    terms = {"content": text_of()} if table.name == "memory_artifacts" else {}
    columns = ", ".join(terms.get(name, name) for name in named if name not in table.local)
    return database.execute(f"select {columns} from {table.rows} order by {', '.join(table.key or named)}")
