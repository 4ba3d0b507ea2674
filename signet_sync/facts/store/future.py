"""Reads facts without sessions dated in the future: a clock that ran ahead must not hide them."""

from __future__ import annotations

import json
from typing import Any

from signet_sync.facts.subjects import REPLACED_BY
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import SOURCES

# The number of future sources that are read, earliest first.
LOOKED_AT = 400

# Starts from the few threads with such sessions; SQLite would start from all sources of the agent.
_SESSIONS = """memory_thread_heads h
    cross join thread_sessions t on t.agent_id = h.agent_id and t.thread_id = h.thread_id and t.latest_us > ?2
    cross join sessions n on n.agent_id = t.agent_id and n.session_token = t.session_token
        and n.session_id = t.session_id"""
_TOUCHED = f"""
    select f.fact, f.id from {_SESSIONS}
    cross join attribute_sources s on s.session = n.session and s.at_us > ?2
    cross join entity_attributes f on f.fact = s.fact
    where h.agent_id = ?1 and h.latest_us > ?2 order by s.at_us, f.id limit {LOOKED_AT}"""
_ENDED = f"""
    select f.fact, f.id from {_SESSIONS}
    cross join fact_reports r on r.session = n.session and r.at_us > ?2
    cross join entity_attributes f on f.ended_by = r.artifact
    where h.agent_id = ?1 and h.latest_us > ?2 order by r.at_us, f.id limit {LOOKED_AT}"""
_SUPERSEDED = """
    select f.fact, f.id from json_each(?3)
    cross join entity_attributes f on f.agent_id = ?1 and f.superseded_by = json_each.value and f.latest_us <= ?2"""
# What sources of the past claimed last.
_CLAIMED = """
    select f.fact, f.entity, s.at_us, s.claims
    from json_each(?2) cross join entity_attributes f on f.fact = json_each.value
    cross join attribute_sources s on s.fact = f.fact and s.claims is not null
        and s.at_us = (select max(t.at_us) from attribute_sources t
            where t.fact = f.fact and t.done = 0 and t.at_us <= ?1)"""
_REPLACED = """
    select json_each.value->>0 from json_each(?)
    where exists (select 1 from fact_claims c where c.entity = json_each.value->>1 and c.subject = json_each.value->>2
        and c.place > json_each.value->>3 and c.place <= json_each.value->>4)"""
_STATED = f"""
    select attribute_id, aspect, text, (select norm from entities e where e.agent_id = s.agent_id
        and e.id = s.entity_id and e.kind = 'project'), at_us, source_path, done
    from {SOURCES} s where agent_id = ? and attribute_id = ? and at_us <= ?
    order by at_us desc, source_path desc limit 1"""


def facts(database: Database, agent_id: str, now_us: int) -> dict[str, tuple[Any, ...]]:
    """Returns id, aspect, text, project, instant and path of facts active at `now_us` (microseconds since 1970), by id.

    Only facts that sessions after `now_us` repeat, supersede, or mark or report as done.
    """
    given = agent_id, now_us
    touched = dict(database.execute(_TOUCHED, given))
    superseded = database.execute(_SUPERSEDED, (*given, json.dumps(sorted(set(touched.values())))))
    ids = touched | dict(superseded) | dict(database.execute(_ENDED, given))
    replaced = _replaced(database, sorted(ids), now_us)
    found: dict[str, tuple[Any, ...]] = {}
    for fact_id in sorted(ids[fact] for fact in ids.keys() - replaced):
        for *row, done in database.execute(_STATED, (agent_id, fact_id, now_us)):
            if not done:
                found[fact_id] = tuple(row)
    return found


def _replaced(database: Database, facts: list[int], now_us: int) -> set[int]:
    """Returns those of some facts that others had replaced by an instant."""
    claimed = [
        (fact, entity, subject, 2 * at_us + bool(changed))
        for fact, entity, at_us, claims in database.execute(_CLAIMED, (now_us, json.dumps(facts)))
        for subject, _, changed in json.loads(claims)
    ]
    latest = 2 * now_us + 1
    # The claims of facts that the future repeats have moved there: those of the past are these.
    places: dict[tuple[int, str], int] = {}
    for _, entity, subject, place in claimed:
        places[entity, subject] = max(places.get((entity, subject), place), place)
    asked = [
        (fact, entity, f"{REPLACED_BY[subject[0]]}{subject[1:]}", place, latest)
        for fact, entity, subject, place in claimed
    ]
    own = {fact for fact, entity, subject, place, _ in asked if places.get((entity, subject), place) > place}
    return own | {fact for (fact,) in database.execute(_REPLACED, (json.dumps(asked),))}
