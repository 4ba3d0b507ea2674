"""Stores what one pass leaves for the next: a halt, what is due, by which rules rows were made, and the outbox.

A row of the outbox names the first deriver that has to process the source; later derivers process it in the same batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Literal

from signet_sync.storage.database.connection import Database
from signet_sync.sync.index_records import MANIFEST, SESSION, Source

_TABLE = "passes"


def is_halted(database: Database) -> bool:
    """Returns whether passes are halted."""
    return bool(database.state(_TABLE, "halted"))


def halt_message(database: Database) -> str:
    """Returns why passes are halted; empty if they are not."""
    return database.state(_TABLE, "halted") or ""


def halt(database: Database, message: str) -> None:
    """Records a halt, and why."""
    if halt_message(database) != message:
        with database.transaction():
            database.set_state(_TABLE, "halted", message)


# Why passes are halted; how many files an unfinished first index has left to read; what is due: a look for sessions
# without a manifest, by the next full pass that may write, wiping free space that may hold expired rows, pages that
# wait for many passes; when native rows were last examined (ISO 8601 UTC).
Fact = Literal["halted", "unread", "manifests_due", "wipe_due", "pages_due", "examined_at"]


def get(database: Database, what: Fact) -> Any:
    """Returns what was recorded; something false if nothing was."""
    return database.state(_TABLE, what)


def put(database: Database, what: Fact, value: float | str | None) -> None:
    """Records it. In the caller's transaction."""
    database.set_state(_TABLE, what, value)


def find_version(database: Database, name: str) -> str | None:
    """Returns from what the rows of a deriver were made, or of one who keeps its own; None if they never were."""
    found: str | None = database.value("select version from derivers where name = ?", (name,))
    return found


def set_version(database: Database, name: str, version: str) -> None:
    """Records it. In the caller's transaction."""
    database.execute("insert or replace into derivers(name, version) values(?, ?)", (name, version))


# ── the outbox: which sources derivers still have to process, one row for each, newest sessions first ──

# Later than every instant: removed sources, and those another deriver moved, do not wait for older sessions.
AT_ONCE = 1 << 62

_NEWEST = (
    "(select max(membership_us) from memory_artifacts where agent_id = ?3 and session_token = ?4 and session_id = ?5)"
)
_PUT = """
    insert into outbox(deriver, kind, agent_id, session_token, session_id, at_us)
    values(?1, ?2, ?3, ?4, ?5, {at})
    on conflict do update set at_us = excluded.at_us,
        deriver = iif(deriver in (select value from json_each(?6)), deriver, excluded.deriver)"""
_PUT_SESSION = _PUT.format(at=f"coalesce({_NEWEST}, {AT_ONCE})")
_PUT_OTHER = _PUT.format(at=AT_ONCE)

# Each deriver, kind and instant is one step in an index: a backlog has millions of rows, and every batch asks.
_WAITING = """
    with recursive derivers(deriver) as (
        select min(deriver) from outbox
        union all
        select (select min(o.deriver) from outbox o where o.deriver > d.deriver) from derivers d
        where d.deriver is not null),
    pairs(deriver, kind) as (
        select deriver, (select min(o.kind) from outbox o where o.deriver = d.deriver) from derivers d
        where d.deriver is not null
        union all
        select deriver, (select min(o.kind) from outbox o where o.deriver = p.deriver and o.kind > p.kind) from pairs p
        where p.kind is not null)
    select deriver, kind, (select max(o.at_us) from outbox o where o.deriver = p.deriver and o.kind = p.kind)
    from pairs p where kind is not null"""


def queue_sources(database: Database, deriver: str, sources: Iterable[Source], *, before: Sequence[str] = ()) -> None:
    """Queues sources for a deriver and those behind it; a source queued for a deriver in `before` stays queued there.

    In the caller's transaction.
    """
    earlier = json.dumps(before)
    for of_session, some in groupby(sources, key=lambda source: source.kind in (SESSION, MANIFEST)):
        rows = [(deriver, *source, earlier) for source in some]
        database.executemany(_PUT_SESSION if of_session else _PUT_OTHER, rows)


def list_newest(database: Database, deriver: str, limit: int, since_us: int) -> list[Source]:
    """Returns the newest sources for which a deriver is the first in line, none before an instant."""
    found: list[tuple[int, Source]] = []
    for kind in (kind for name, kind in list_waiting(database) if name == deriver):
        rows = database.execute(
            "select -at_us, kind, agent_id, session_token, session_id from outbox"
            " where deriver = ? and kind = ? and at_us >= ?"
            " order by at_us desc, agent_id, session_token, session_id limit ?",
            (deriver, kind, since_us, limit),
        )
        found += [(row[0], Source(*row[1:])) for row in rows]
    return [source for _, source in sorted(found)[:limit]]


def take_sources(database: Database, sources: Iterable[Source]) -> None:
    """Deletes sources that all derivers have processed. In the caller's transaction."""
    database.executemany(
        "delete from outbox where kind = ? and agent_id = ? and session_token = ? and session_id = ?", list(sources)
    )


def list_waiting(database: Database) -> dict[tuple[str, str], int]:
    """Returns the newest queued instant by first deriver and kind of source."""
    return {(deriver, kind): at_us for deriver, kind, at_us in database.execute(_WAITING)}


def has_waiting(database: Database, count: int = 1) -> bool:
    """Returns whether anything is queued, or at least so many sources."""
    return bool(database.value("select exists(select 1 from outbox limit 1 offset ?)", (count - 1,)))


def count_waiting(database: Database) -> int:
    """Returns the number of queued sources."""
    count: int = database.value("select count(*) from outbox")
    return count
