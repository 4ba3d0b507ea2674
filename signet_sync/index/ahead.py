"""Facts of which a session of the future tells, as they stand without it: a clock that ran ahead must not hide them."""

from __future__ import annotations

from typing import Any

from signet_sync.index.database import Database

# Sources of the future that are looked at, the soonest first.
SOURCES = 400

# From the few threads that have such sessions; SQLite would begin with all sources of the agent.
_TOLD = """
    select s.attribute_id, s.entity_id, s.aspect, s.slot from memory_thread_heads h
    cross join thread_sessions t on t.agent_id = h.agent_id and t.thread_id = h.thread_id and t.latest_us > ?
    cross join attribute_sources s indexed by attribute_sources_session on s.agent_id = t.agent_id
        and s.session_token = t.session_token and s.session_id = t.session_id and s.at_us > ?
    where h.agent_id = ? and h.latest_us > ? order by s.at_us, s.attribute_id limit ?"""
_HOLDS = """
    select s.attribute_id from entity_attributes a indexed by entity_attributes_slot
    cross join attribute_sources s on s.agent_id = a.agent_id and s.attribute_id = a.id and s.done = 0 and s.at_us <= ?
    where a.agent_id = ? and a.entity_id = ? and a.aspect = ? and a.slot = ?
    order by s.at_us desc, s.attribute_id desc limit 1"""
_STATED = """
    select attribute_id, aspect, text, (select norm from entities e where e.agent_id = s.agent_id
        and e.id = s.entity_id and e.kind = 'project'), at_us, source_path, done
    from attribute_sources s where agent_id = ? and attribute_id = ? and at_us <= ?
    order by at_us desc, source_path desc limit 1"""


def facts(database: Database, agent_id: str, now_us: int) -> dict[str, tuple[Any, ...]]:
    """Id, aspect, text, project, instant and path of facts that hold at `now_us` (microseconds since 1970), by id.

    Of those that sessions after `now_us` state again, supersede or say are done.
    """
    told = set(database.execute(_TOLD, (now_us, now_us, agent_id, now_us, SOURCES)))
    slots = {row[1:] for row in told if row[3] is not None}
    holding = {row[0] for row in told if row[3] is None}
    for slot in slots:
        holding.update(one for (one,) in database.execute(_HOLDS, (now_us, agent_id, *slot)))
    found: dict[str, tuple[Any, ...]] = {}
    for fact_id in sorted(holding):
        for *row, done in database.execute(_STATED, (agent_id, fact_id, now_us)):
            if not done:
                found[fact_id] = tuple(row)
    return found
