"""Stores recall events, the hits of `recall` on memories, and counts them for the signals."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from signet_sync.errors import DatabaseError
from signet_sync.formats.timestamps import DAY
from signet_sync.memories.promotion_score import Totals
from signet_sync.storage.database.connection import Database

# The SQL of totals.
_TOTALS = (
    f"count(*), sum(e.score), max(e.at_us), count(distinct e.query), count(distinct e.at_us / {DAY})"
    " from recall_events e"
)


def record(database: Database, agent_id: str, query: str, hits: Iterable[tuple[str, float]], at_us: int) -> bool:
    """Records an event for each hit (memory id, score in (0, 1]) on an existing memory; of the query only its digest.

    Returns False if the database was busy: an answer does not wait for its event.
    """
    asked = digest(query)
    rows = [(agent_id, memory_id, asked, score, at_us) for memory_id, score in hits]
    if not rows:
        return True
    try:
        with database.transaction():
            database.executemany(
                "insert into recall_events(agent_id, memory_id, query, score, at_us) select ?1, ?2, ?3, ?4, ?5"
                " where exists(select 1 from memories where agent_id = ?1 and id = ?2)",
                rows,
            )
    except DatabaseError:
        return False
    return True


def digest(query: str) -> str:
    """Returns what is kept of a query: signals only need to know whether it is another one.

    Whoever asks after a removal whether something is really gone must not bring its words back.
    """
    return hashlib.sha256(query.encode("utf-8", "replace")).hexdigest()[:32]


def list_found_since(database: Database, agent_id: str, since_us: int) -> Iterator[tuple[str, Totals, bool]]:
    """Yields the memories of an agent found at `since_us` or later, by id: totals of these hits, whether promoted."""
    for found, promoted, *totals in database.execute(
        "select e.memory_id, exists(select 1 from memory_promotions p where p.agent_id = e.agent_id"
        f" and p.memory_id = e.memory_id), {_TOTALS} where e.agent_id = ? and e.at_us >= ?"
        " group by e.memory_id order by e.memory_id",
        (agent_id, since_us),
    ):
        yield found, Totals(*totals), bool(promoted)


def first_at(database: Database, agent_id: str) -> int | None:
    """Returns the instant of an agent's oldest event."""
    found: int | None = database.value("select min(at_us) from recall_events where agent_id = ?", (agent_id,))
    return found


def count(database: Database, agent_id: str) -> int:
    """Counts an agent's events."""
    events: int = database.value("select count(*) from recall_events where agent_id = ?", (agent_id,))
    return events


def any_before(database: Database, before_us: int) -> bool:
    """Checks whether any agent has an older event."""
    return bool(database.value("select exists(select 1 from recall_events where at_us < ?)", (before_us,)))


def drop_before(database: Database, before_us: int) -> int:
    """Deletes older events of all agents; returns their number. In the caller's transaction."""
    database.execute("delete from recall_events where at_us < ?", (before_us,))
    return database.connection.changes()
