"""Stores the history of promotions: each sweep, what it promoted and why. MEMORY.md and DREAMS.md are made from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from signet_sync.errors import DatabaseError
from signet_sync.formats.timestamps import DAY, iso
from signet_sync.memories.score import Dream, DreamedView, Promotion, SweepView, Totals
from signet_sync.storage.database.connection import Database

# A page shows a few of them; older promotions have long been displaced.
SHOWN = 200


def store(
    database: Database, agent_id: str, sweep: tuple[str, int, int, int, int], promotions: Sequence[Promotion]
) -> None:
    """Records a sweep (id, instant, candidates, promoted, skipped) and what it promotes, each memory only once.

    Repeating a sweep adds its new promotions to the earlier ones. In the caller's transaction.
    """
    database.execute(
        "insert into dream_sweeps(agent_id, sweep_id, at_us, candidates, promoted, skipped) values(?, ?, ?, ?, ?, ?)"
        " on conflict(agent_id, sweep_id) do update set promoted = promoted + excluded.promoted"
        " where excluded.promoted > 0",
        (agent_id, *sweep),
    )
    database.executemany(
        f"insert into memory_promotions(agent_id, sweep_id, {', '.join(Promotion._fields)})"
        " values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(agent_id, sweep[0], *one) for one in promotions],
    )


def list_dreamed(database: Database, agent_id: str) -> dict[str, DreamedView]:
    """Returns the latest promotions that stand, by memory, as MEMORY.md shows them."""
    rows = database.execute(
        # Sweeps first, so that only the last few are read.
        "select p.memory_id, s.at_us, p.score, p.recall_count, p.unique_days from dream_sweeps s"
        " cross join memory_promotions p on p.agent_id = s.agent_id and p.sweep_id = s.sweep_id"
        " where s.agent_id = ? order by s.sweep_id desc, p.score desc, p.memory_id limit ?",
        (agent_id, SHOWN),
    )
    return {memory_id: DreamedView(*rose) for memory_id, *rose in rows}


_PROMOTION = ", ".join(f"p.{name}" for name in Promotion._fields)
_DREAM = f"""
    select p.sweep_id, m.content, s.at_us, {_PROMOTION} from memory_promotions p
    join memories m on m.agent_id = p.agent_id and m.id = p.memory_id
    join dream_sweeps s on s.agent_id = p.agent_id and s.sweep_id = p.sweep_id"""


def sweeps(database: Database, agent_id: str) -> list[SweepView]:
    """Returns every sweep of an agent, oldest first, with its promotions except forgotten memories, best first."""
    by_sweep: dict[str, list[Dream]] = {}
    best_first = "order by p.score desc, p.last_us desc, p.memory_id"
    for row in database.execute(f"{_DREAM} where p.agent_id = ? {best_first}", (agent_id,)):
        by_sweep.setdefault(row[0], []).append(Dream(Promotion(*row[3:]), *row[1:3]))
    rows = database.execute(
        "select sweep_id, at_us, candidates, skipped, promoted from dream_sweeps where agent_id = ? order by sweep_id",
        (agent_id,),
    )
    return [SweepView._make((*row, by_sweep.get(row[0], ()))) for row in rows]


def list_since(database: Database, sweep_id: str) -> dict[str, list[Promotion]]:
    """Returns the promotions of all sweeps after one, by agent, in order of the sweeps, best first."""
    promoted: dict[str, list[Promotion]] = {}
    for agent_id, *row in database.execute(
        f"select p.agent_id, {_PROMOTION} from dream_sweeps s"
        " join memory_promotions p on p.agent_id = s.agent_id and p.sweep_id = s.sweep_id"
        " where s.sweep_id > ? order by p.agent_id, p.sweep_id, p.score desc, p.memory_id",
        (sweep_id,),
    ):
        promoted.setdefault(agent_id, []).append(Promotion(*row))
    return promoted


def newest(database: Database) -> str:
    """Returns the id of the newest sweep of any agent, or an empty string."""
    found: str | None = database.value("select max(sweep_id) from dream_sweeps")
    return found or ""


def fingerprint(database: Database, agent_id: str) -> str:
    """Returns a value that changes whenever an agent's DREAMS.md would; empty without sweeps. Reads no text."""
    counted = (
        "select count(*) || ' ' || max(sweep_id) || ' ' || sum(promoted) || ' '"
        " || (select count(*) from memory_promotions where agent_id = ?1) from dream_sweeps where agent_id = ?1"
    )
    return database.value(counted, (agent_id,)) or ""


def last_sweep(database: Database, agent_id: str, *, until_us: int | None = None) -> int | None:
    """Returns the instant of an agent's newest sweep, or of the newest until a given time."""
    found: int | None = database.value(
        "select max(at_us) from dream_sweeps where agent_id = ? and at_us <= coalesce(?, at_us)", (agent_id, until_us)
    )
    return found


def counts(database: Database, agent_id: str) -> dict[str, int]:
    """Returns the numbers of an agent's memories, of the hits on them, and of those promoted."""
    tables = {"memories": "memories", "recall_events": "recall_events", "promotions": "memory_promotions"}
    return {
        name: database.value(f"select count(*) from {table} where agent_id = ?", (agent_id,))
        for name, table in tables.items()
    }


# ── stores recall events, the hits of `recall` on memories, and counts them for the signals ──

# The SQL of totals.
_TOTALS = (
    f"count(*), sum(e.score), max(e.at_us), count(distinct e.query), count(distinct e.at_us / {DAY})"
    " from recall_events e"
)


def record(database: Database, agent_id: str, query: str, hits: Iterable[tuple[str, float]], at_us: int) -> None:
    """Records an event for each hit (memory id, score in (0, 1]) on an existing memory; of the query only its digest.

    It is left out if the database is busy: an answer does not wait for its event.
    """
    asked = digest(query)
    rows = [(agent_id, memory_id, asked, score, at_us) for memory_id, score in hits]
    with suppress(DatabaseError), database.transaction():
        database.executemany(
            "insert into recall_events(agent_id, memory_id, query, score, at_us) select ?1, ?2, ?3, ?4, ?5"
            " where exists(select 1 from memories where agent_id = ?1 and id = ?2)",
            rows,
        )


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


def first_at(database: Database, agent_id: str | None = None) -> int | None:
    """Returns the instant of the oldest event, of one agent if it is named."""
    where, bindings = ("", ()) if agent_id is None else (" where agent_id = ?", (agent_id,))
    found: int | None = database.value(f"select min(at_us) from recall_events{where}", bindings)
    return found


def counts_since(database: Database, since_us: int) -> dict[str, int]:
    """Counts the questions to which a memory answered since then, and the memories made since, of all agents."""
    asked = "select count(*) from (select distinct agent_id, query, at_us from recall_events where at_us >= ?)"
    made = "select count(*) from memories where created_at >= ?"
    return {"questions": database.value(asked, (since_us,)), "notes": database.value(made, (iso(since_us),))}


def drop_before(database: Database, before_us: int) -> None:
    """Deletes older events of all agents. In the caller's transaction."""
    database.execute("delete from recall_events where at_us < ?", (before_us,))
