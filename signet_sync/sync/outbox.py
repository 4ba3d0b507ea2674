"""Stores which sources derivers still have to process: one row for each source, newest sessions first.

A row names the first deriver that has to process the source; later derivers process it in the same batch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby

from signet_sync.storage.database.connection import Database
from signet_sync.sync.stages import MANIFEST, SESSION, Source

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


def put(database: Database, deriver: str, sources: Iterable[Source], *, before: Sequence[str] = ()) -> None:
    """Queues sources for a deriver and those behind it; a source queued for a deriver in `before` stays queued there.

    In the caller's transaction.
    """
    earlier = json.dumps(before)
    for of_session, some in groupby(sources, key=lambda source: source.kind in (SESSION, MANIFEST)):
        rows = [(deriver, *source, earlier) for source in some]
        database.executemany(_PUT_SESSION if of_session else _PUT_OTHER, rows)


def newest(database: Database, deriver: str, limit: int, since_us: int = 0) -> list[Source]:
    """Returns the newest sources for which a deriver is the first in line, none before an instant."""
    rows = database.execute(
        "select kind, agent_id, session_token, session_id from outbox where deriver = ? and at_us >= ?"
        " order by at_us desc, kind, agent_id, session_token, session_id limit ?",
        (deriver, since_us, limit),
    )
    return [Source(*row) for row in rows]


def take(database: Database, sources: Iterable[Source]) -> None:
    """Deletes sources that all derivers have processed. In the caller's transaction."""
    database.executemany(
        "delete from outbox where kind = ? and agent_id = ? and session_token = ? and session_id = ?", list(sources)
    )


def waiting(database: Database) -> dict[tuple[str, str], int]:
    """Returns the newest queued instant by first deriver and kind of source."""
    rows = database.execute("select deriver, kind, max(at_us) from outbox group by deriver, kind")
    return {(deriver, kind): at_us for deriver, kind, at_us in rows}


def any_waits(database: Database) -> bool:
    """Returns whether anything is queued."""
    return holds(database, 1)


def holds(database: Database, count: int) -> bool:
    """Returns whether at least `count` sources are queued."""
    return bool(database.value("select exists(select 1 from outbox limit 1 offset ?)", (count - 1,)))


def backlog(database: Database) -> int:
    """Returns the number of queued sources."""
    count: int = database.value("select count(*) from outbox")
    return count
