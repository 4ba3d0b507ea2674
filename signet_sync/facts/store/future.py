"""Reads facts without sessions dated in the future: a clock that ran ahead must not hide them."""

from __future__ import annotations

from typing import Any

from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import SOURCES

# The number of future sources that are read, earliest first.
LOOKED_AT = 400

# Starts from the few threads with such sessions; SQLite would start from all sources of the agent.
_TOUCHED = """
    select f.id, f.entity, f.aspect, s.slot from memory_thread_heads h
    cross join thread_sessions t on t.agent_id = h.agent_id and t.thread_id = h.thread_id and t.latest_us > ?
    cross join sessions n on n.agent_id = t.agent_id and n.session_token = t.session_token
        and n.session_id = t.session_id
    cross join attribute_sources s on s.session = n.session and s.at_us > ?
    cross join entity_attributes f on f.fact = s.fact
    where h.agent_id = ? and h.latest_us > ? order by s.at_us, f.id limit ?"""
_ACTIVE = """
    select f.id from entity_attributes f
    cross join attribute_sources s on s.fact = f.fact and s.done = 0 and s.at_us <= ?
    where f.entity = ? and f.aspect = ? and f.slot = ?
    order by s.at_us desc, f.id desc limit 1"""
_STATED = f"""
    select attribute_id, aspect, text, (select norm from entities e where e.agent_id = s.agent_id
        and e.id = s.entity_id and e.kind = 'project'), at_us, source_path, done
    from {SOURCES} s where agent_id = ? and attribute_id = ? and at_us <= ?
    order by at_us desc, source_path desc limit 1"""


def facts(database: Database, agent_id: str, now_us: int) -> dict[str, tuple[Any, ...]]:
    """Returns id, aspect, text, project, instant and path of facts active at `now_us` (microseconds since 1970), by id.

    Only facts that sessions after `now_us` repeat, supersede or mark as done.
    """
    touched = set(database.execute(_TOUCHED, (now_us, now_us, agent_id, now_us, LOOKED_AT)))
    slots = {row[1:] for row in touched if row[3] is not None}
    active = {row[0] for row in touched if row[3] is None}
    for slot in slots:
        active.update(one for (one,) in database.execute(_ACTIVE, (now_us, *slot)))
    found: dict[str, tuple[Any, ...]] = {}
    for fact_id in sorted(active):
        for *row, done in database.execute(_STATED, (agent_id, fact_id, now_us)):
            if not done:
                found[fact_id] = tuple(row)
    return found
