"""Stores the inputs of every composed MEMORY.md, so that it is composed again only if an input moved."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from signet_sync.storage.database.connection import Database


class Composed(NamedTuple):
    """One page: what names its inputs, when it was composed (microseconds since 1970 UTC), and how much it shows."""

    stamp: str
    at_us: int
    sessions_in_window: int
    rows_rendered: int
    rows_clipped: int
    tokens: int


def of(database: Database, agent_id: str) -> Composed | None:
    """Returns what is known of an agent's page; None where rows that it shows moved since."""
    rows = database.execute(f"select {', '.join(Composed._fields)} from composed where agent_id = ?", (agent_id,))
    return next((Composed(*row) for row in rows), None)


def store(database: Database, agent_id: str, page: Composed | None) -> None:
    """Remembers a page that was composed and written; None: one that has to be again. In the caller's transaction."""
    if page is None:
        forget(database, [agent_id])
    elif of(database, agent_id) != page:
        database.execute("insert or replace into composed values(?, ?, ?, ?, ?, ?, ?)", (agent_id, *page))


def forget(database: Database, agents: Iterable[str]) -> None:
    """Has the pages of agents composed again. In the transaction in which their rows moved."""
    database.executemany("delete from composed where agent_id = ?", [(agent,) for agent in sorted(agents)])


def forget_all(database: Database) -> None:
    """Has every page composed again. In the caller's transaction."""
    database.execute("delete from composed")
