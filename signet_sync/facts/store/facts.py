"""Updates facts and topics from what artifacts state, and makes the lines by which `recall` finds facts.

The newest source determines a fact's words and whether it is done; `facts.store.current` says which next steps and
blockers are of an older list. Everything runs in the caller's transaction.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from signet_sync.facts.store import current
from signet_sync.storage.database.batches import of_values
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import FACTS, path_of
from signet_sync.sync.store.texts import Line

TIER = "fact"
# The words for an aspect in the text that `recall` searches.
ASPECT_WORDS = {"question": "open question", "next": "next step"}

Key = tuple[str, str]  # agent, id


class Fact(NamedTuple):
    """A fact: `topic` is the name of its topic."""

    aspect: str
    text: str
    topic_id: str
    topic: str
    status: str  # active, done, past (of an older list of next steps or blockers)
    earliest_us: int
    latest_us: int
    thread_id: str | None


class Topic(NamedTuple):
    """A topic that artifacts mention."""

    kind: str
    name: str
    mentions: int
    latest_us: int


# The newest of a fact's sources (and of a topic's mentions) counts; of several at one instant the one with the greatest
# path. Parameters are numbers, as JSON.
_NEWEST = f"""{{row}}.at_us = (select max(t.at_us) from {{table}} t where t.{{key}} = k.value)
        and {{row}}.artifact = (select t.artifact from {{table}} t where t.{{key}} = k.value
            and t.at_us = {{row}}.at_us order by {path_of("t.artifact")} desc limit 1)"""
_STORE_FACTS = f"""
    update entity_attributes as f set status = iif(n.done, 'done', 'active'),
        earliest_us = n.earliest_us, latest_us = n.at_us, artifact = n.artifact
    from (select k.value as fact, s.done, s.at_us, s.artifact,
            (select min(t.at_us) from attribute_sources t where t.fact = k.value) as earliest_us
        from json_each(?) k cross join attribute_sources s on s.fact = k.value
            and {_NEWEST.format(row="s", table="attribute_sources", key="fact")}) n
    where f.fact = n.fact and (f.status = 'done', f.earliest_us, f.latest_us, f.artifact)
        is not (n.done, n.earliest_us, n.at_us, n.artifact)"""
_STORE_ENTITIES = f"""
    update entities as e set name = n.name, latest_us = n.at_us
    from (select k.value as entity, m.name, m.at_us
        from json_each(?) k cross join entity_mentions m on m.entity = k.value
            and {_NEWEST.format(row="m", table="entity_mentions", key="entity")}) n
    where e.entity = n.entity and (e.name, e.latest_us) is not (n.name, n.at_us)"""
_DROP_FACTS = """
    delete from entity_attributes where fact in (select value from json_each(?))
        and not exists (select 1 from attribute_sources s where s.fact = entity_attributes.fact)"""
_DROP_ENTITIES = """
    delete from entities where entity in (select value from json_each(?))
        and not exists (select 1 from entity_mentions m where m.entity = entities.entity)"""

_WEEKS = """
    select distinct t.thread_id, t.week from json_each(?2) k
    cross join entity_attributes f on f.agent_id = ?1 and f.id = k.value
    cross join attribute_sources s on s.fact = f.fact and s.at_us = f.latest_us and s.artifact = f.artifact
    cross join sessions n on n.session = s.session
    cross join thread_sessions t on t.agent_id = n.agent_id and t.session_token = n.session_token
        and t.session_id = n.session_id"""


def settle(
    database: Database, facts: Collection[int], entities: Collection[int], fresh: Collection[int] = ()
) -> set[Key]:
    """Updates some facts and topics from their sources, and what follows for other facts; returns the changed facts.

    `fresh` are those of the given facts that are up to date.
    """
    settled = json.dumps(sorted(set(facts).difference(fresh)))
    changed = set(of_values(database, "agent_id, id", "entity_attributes", "fact", facts))
    lists = current.lists_of(database, facts)
    named = json.dumps(sorted(entities))
    database.execute(_DROP_ENTITIES, (named,))
    database.execute(_STORE_ENTITIES, (named,))
    database.execute(_DROP_FACTS, (settled,))
    database.execute(_STORE_FACTS, (settled,))
    return changed | current.settle(database, lists)


def weeks(database: Database, keys: Iterable[Key]) -> set[tuple[str, str, str]]:
    """Returns agent, thread and week of the sessions that stated some facts last."""
    by_agent: dict[str, list[str]] = {}
    for agent_id, one in keys:
        by_agent.setdefault(agent_id, []).append(one)
    return {
        (agent_id, *row)
        for agent_id, some in by_agent.items()
        for row in database.execute(_WEEKS, (agent_id, json.dumps(sorted(some))))
    }


# ── recall lines ──

_LINES = """
    select f.agent_id, f.id, s.text, f.aspect, iif(e.kind = 'project', e.name, null), f.latest_us
    from json_each(?2) k cross join entity_attributes f on f.agent_id = ?1 and f.id = k.value and f.status = 'active'
    cross join attribute_sources s on s.fact = f.fact and s.at_us = f.latest_us and s.artifact = f.artifact
    cross join entities e on e.entity = f.entity"""


def active(database: Database) -> list[Key]:
    """Lists the active facts."""
    return list(database.execute("select agent_id, id from entity_attributes where status = 'active'"))


def lines(database: Database, agent_id: str, ids: Collection[str]) -> list[Line]:
    """Returns the lines by which `recall` finds the active ones of some facts."""
    return [_line(row) for row in database.execute(_LINES, (agent_id, json.dumps(list(ids))))]


def _line(row: Sequence[Any]) -> Line:
    agent_id, key, text, aspect, project, at_us = row
    words = " · ".join(filter(None, (text, ASPECT_WORDS.get(aspect, aspect))))
    return Line(agent_id, TIER, key, words, at_us, private=True, about=project or "")


# ── single facts and topics, for display ──


def fact(database: Database, agent_id: str, fact_id: str) -> Fact | None:
    """Returns a fact of any status."""
    for row in database.execute(
        "select f.aspect, f.text, f.entity_id, coalesce(e.name, ''), f.status, f.earliest_us,"
        f" f.latest_us, f.thread_id from {FACTS} f"
        " left join entities e on e.agent_id = f.agent_id and e.id = f.entity_id"
        " where f.agent_id = ? and f.id = ?",
        (agent_id, fact_id),
    ):
        return Fact(*row)
    return None


def topic(database: Database, agent_id: str, topic_id: str) -> Topic | None:
    """Returns a topic."""
    for row in database.execute(
        "select kind, name, mentions, latest_us from entities where agent_id = ? and id = ?", (agent_id, topic_id)
    ):
        return Topic(*row)
    return None
