"""Counts what memory gave and took in the last days, from the records of injections and the rows that there are."""

import json
from typing import NamedTuple

from signet_sync.capture import injections
from signet_sync.formats.timestamps import DAY, iso
from signet_sync.storage.database.connection import Database
from signet_sync.storage.locations import StateFolder

DAYS = 7
_CHARACTERS = 4  # of a token, about


class Receipt(NamedTuple):
    """What was injected into so many sessions, in tokens, and how many of its lines had been replaced before.

    `questions` are those to which a memory answered, `corrections` statements that were marked as done or not true.
    `bytes_kept` are those of the files in the index.
    """

    days: int
    sessions: int
    tokens: int
    stale: int
    questions: int
    notes: int
    corrections: int
    bytes_kept: int


def receipt(database: Database, folder: StateFolder, now_us: int) -> Receipt:
    """Returns the receipt of the last days, of all agents."""
    since_us = now_us - DAYS * DAY
    recent = list(injections.since(folder, since_us / 1e6))
    given = [(one.agent_id, line, int(one.at * 1e6)) for one in recent for line in one.ids if line.startswith("f-")]
    stale = database.value(
        "select count(*) from json_each(?) g cross join statements s on s.agent_id = g.value->>0 and s.id = g.value->>1"
        " and s.newest = 1 and s.status = 'replaced' cross join statements r on r.agent_id = s.agent_id"
        " and r.id = s.replaced_by and r.newest = 1 where r.at_us < g.value->>2",
        (json.dumps(given),),
    )
    asked = "select count(*) from (select distinct agent_id, query, at_us from recall_events where at_us >= ?)"
    return Receipt(
        DAYS,
        len(recent),
        sum(one.characters for one in recent) // _CHARACTERS,
        stale,
        database.value(asked, (since_us,)),
        database.value("select count(*) from memories where created_at >= ?", (iso(since_us),)),
        database.value("select count(*) from statement_marks where at_us >= ?", (since_us,)),
        database.value("select coalesce(sum(size), 0) from files where verdict = 'indexed'"),
    )
