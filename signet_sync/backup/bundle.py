"""Reads the rows of a bundle from a database, and writes them into an empty one, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from signet_sync.storage.database import salvage
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import placeholders
from signet_sync.storage.database.tables import backed_up


def rows(database: Database, agent_id: str | None, *, seals: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields table and values of a bundle's rows, of all agents or of one; with `seals` also the seals' bytes."""
    where, bindings = ("", ()) if agent_id is None else (" where agent_id = ?", (agent_id,))
    for table in backed_up():
        if agent_id is not None and "agent_id" not in table.types:
            continue  # its rows do not name an agent
        names = tuple(table.types) if seals else table.columns
        for row in database.execute(f"select {', '.join(names)} from {table.rows}{where}", bindings):
            yield table.name, dict(zip(names, row, strict=True))


def put(database: Database, table: str, values: Mapping[str, Any]) -> bool:
    """Writes a row into an empty database; returns False if the row's own id or hash shows that it was changed."""
    if not salvage.is_plausible(table, values):
        return False
    names = ", ".join(values)
    database.execute(
        f"insert or ignore into {table}({names}) values({placeholders(len(values))})", list(values.values())
    )
    return True
