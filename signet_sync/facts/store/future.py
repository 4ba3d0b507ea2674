"""Reads facts without sessions dated in the future: a clock that ran ahead must not hide them."""

from __future__ import annotations

from typing import Any

from signet_sync.facts.store import current
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import SOURCES

# The number of future sources that are read, earliest first.
LOOKED_AT = 400

# Starts from the few threads with such sessions; SQLite would start from all sources of the agent.
_TOUCHED = f"""
    select f.fact, f.id from memory_thread_heads h
    cross join thread_sessions t on t.agent_id = h.agent_id and t.thread_id = h.thread_id and t.latest_us > ?2
    cross join sessions n on n.agent_id = t.agent_id and n.session_token = t.session_token
        and n.session_id = t.session_id
    cross join attribute_sources s on s.session = n.session and s.at_us > ?2
    cross join entity_attributes f on f.fact = s.fact
    where h.agent_id = ?1 and h.latest_us > ?2 order by s.at_us, f.id limit {LOOKED_AT}"""
_STATED = f"""
    select attribute_id, aspect, text, (select norm from entities e where e.agent_id = s.agent_id
        and e.id = s.entity_id and e.kind = 'project'), at_us, source_path, done
    from {SOURCES} s where agent_id = ? and attribute_id = ? and at_us <= ?
    order by at_us desc, source_path desc limit 1"""


def facts(database: Database, agent_id: str, now_us: int) -> dict[str, tuple[Any, ...]]:
    """Returns id, aspect, text, project, instant and path of facts active at `now_us` (microseconds since 1970), by id.

    Only facts that sessions after `now_us` repeat, mark as done, or replace by a newer list.
    """
    touched = dict(database.execute(_TOUCHED, (agent_id, now_us)))
    lists = current.lists_of(database, touched)
    listed: dict[int, str] = {}
    for topic, aspect in lists:
        listed |= current.listed(database, topic, aspect, now_us)
    found: dict[str, tuple[Any, ...]] = {}
    for fact, fact_id in sorted((touched | listed).items(), key=lambda row: row[1]):
        if fact not in listed and current.lists_of(database, [fact]):
            continue
        for *row, done in database.execute(_STATED, (agent_id, fact_id, now_us)):
            if not done:
                found[fact_id] = tuple(row)
    return found
