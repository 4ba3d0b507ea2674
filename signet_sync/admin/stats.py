"""Measures what an agent remembers and recalls, what memory gave, and what it takes on the disk."""

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from signet_sync.capture import injections
from signet_sync.formats.timestamps import DAY, iso
from signet_sync.integrity import store as integrity_store
from signet_sync.memories.store import promotions, recall_events
from signet_sync.storage.database.connection import Database, list_set_aside
from signet_sync.storage.locations import StateFolder
from signet_sync.sync.store import counts

if TYPE_CHECKING:
    from signet_sync.storage.database.connection import Database
    from signet_sync.storage.state_dir import StateFolder

DAYS = 7
TAGS = 10


class Remembered(NamedTuple):
    """What an agent remembers: counts of its rows; `last_dream` is ISO 8601 UTC or None."""

    memories: int
    recall_events: int
    promotions: int
    last_dream: str | None


class Stats(NamedTuple):
    """Counts of one agent; `last_dream` is ISO 8601 UTC or None, tags come with their hits, most first."""

    memories: int
    promotions: int
    last_dream: str | None
    recall_events_7d: int
    top_concept_tags_7d: list[tuple[str, int]]
    sessions: int
    artifacts: int


def count_remembered(database: Database, agent_id: str) -> Remembered:
    """Returns the counts of an agent. Raises what reading the database raises."""
    memories, promoted = promotions.counts(database, agent_id)
    last = promotions.last_sweep(database, agent_id)
    hits = recall_events.count_since(database, agent_id, 0)
    return Remembered(memories, hits, promoted, None if last is None else iso(last))


def stats(database: Database, agent_id: str, now_us: int) -> Stats:
    """Returns the counts at `now_us`. Raises what reading the database raises."""
    since = now_us - DAYS * DAY
    now = count_remembered(database, agent_id)
    sessions, artifacts = counts.counts_of(database, agent_id)
    return Stats(
        now.memories,
        now.promotions,
        now.last_dream,
        recall_events.count_since(database, agent_id, since),
        recall_events.top_concepts_since(database, agent_id, since, TAGS),
        sessions,
        artifacts,
    )


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
    recent = list(injections.list_changed(folder, since_us / 1e6))
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


def measure_disk(database: str, folder: StateFolder) -> dict[str, int]:
    """Returns bytes of the database, its log (`wal`), folders of the state folder, and all of it together (`state`).

    `damaged` are databases that were moved aside.
    """
    return {
        "database": _size(database),
        "wal": _size(f"{database}-wal"),
        "damaged": sum(map(_size, list_set_aside(database))),
        "backups": _below(folder.backups),
        "logs": _below(folder.logs),
        "live": _below(folder.live),
        "spool": _below(folder.spool),
        "state": _below(folder.path),
    }


def measure_inside(database: Database) -> tuple[dict[str, int], dict[str, int]]:
    """Returns bytes and row counts of what the database keeps besides derived rows.

    `unused` is space in the database's file that dropped rows have left and new ones will fill.
    """
    kept = {"seals": integrity_store.bytes_used(database), "recall_events": recall_events.bytes_used(database)}
    unused = database.value("pragma freelist_count") * database.value("pragma page_size")
    rows = {name: count for name, (count, _) in kept.items()}
    rows |= {name: database.value(f"select count(*) from {name}") for name in ("memories", "pins")}
    return {name: size for name, (_, size) in kept.items()} | {"unused": unused}, rows


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _below(folder: str) -> int:
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(where, name)).st_size
    return total
