"""Measures what an agent remembers and recalls, what memory gave, and what it takes on the disk."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

from signet_sync.capture import injections
from signet_sync.formats.timestamps import DAY, iso
from signet_sync.memories.store import promotions, recall_events
from signet_sync.storage.database.connection import Database, list_set_aside
from signet_sync.storage.locations import StateFolder
from signet_sync.sync.store import violations

DAYS = 7
_CHARACTERS = 4  # of a token, about


def count_remembered(database: Database, agent_id: str) -> dict[str, Any]:
    """Returns counts of an agent's rows, and when it dreamed last. Raises what reading the database raises."""
    memories, promoted = promotions.counts(database, agent_id)
    last = promotions.last_sweep(database, agent_id)
    return {
        "memories": memories,
        "recall_events": recall_events.count(database, agent_id),
        "promotions": promoted,
        "last_dream": None if last is None else iso(last),
    }


def receipt(database: Database, folder: StateFolder, now_us: int) -> dict[str, int]:
    """Returns what was injected in the last days into how many sessions of all agents, about, in tokens.

    `stale` are its lines that had been replaced before, `questions` those to which a memory answered, `corrections`
    statements that were marked as done or not true, `bytes_kept` those of the files in the index.
    """
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
    return {
        "days": DAYS,
        "sessions": len(recent),
        "tokens": sum(one.characters for one in recent) // _CHARACTERS,
        "stale": stale,
        "questions": database.value(asked, (since_us,)),
        "notes": database.value("select count(*) from memories where created_at >= ?", (iso(since_us),)),
        "corrections": database.value("select count(*) from statement_marks where at_us >= ?", (since_us,)),
        "bytes_kept": database.value("select coalesce(sum(size), 0) from files where verdict = 'indexed'"),
    }


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
    seals, size = violations.bytes_used(database)
    unused = database.value("pragma freelist_count") * database.value("pragma page_size")
    rows = {name: database.value(f"select count(*) from {name}") for name in ("memories", "pins")}
    return {"seals": size, "unused": unused}, {"seals": seals, **rows}


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
