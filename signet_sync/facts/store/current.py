"""Decides which next steps and blockers of a project are current: those of the newest session that lists any.

A session lists what it states as open; one that only ticks items off, or states nothing of the kind, replaces no list.
This holds for next steps and for blockers apart, and for nothing else: decisions and questions have no newer list, and
sessions without a project have nothing in common.
"""

from __future__ import annotations

import json
from collections.abc import Collection

from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import path_of

# Facts of a kind and project that are looked at, newest first: a list is among them unless as many were done since.
LOOKED_AT = 400

List = tuple[int, str]  # number of a project's topic, aspect

# In the order of the index: it is read as far as needed.
_LISTING = f"""
    select s.session, s.at_us, {path_of("s.artifact")}, f.latest_us from (
        select fact, latest_us from entity_attributes indexed by entity_attributes_listed
        where entity = ?1 and aspect = ?2 and aspect in ('blocker', 'next')
        order by latest_us desc limit {LOOKED_AT}) f
    cross join attribute_sources s on s.fact = f.fact and s.done = 0 and s.at_us <= ?3"""
_LISTED = """
    select f.fact, f.id from attribute_sources s cross join entity_attributes f using (fact)
    where s.session = ?1 and s.done = 0 and s.at_us <= ?4 and f.entity = ?2 and f.aspect = ?3"""
_LISTS = """
    select distinct f.entity, f.aspect from json_each(?) k
    cross join entity_attributes f on f.fact = k.value and f.aspect in ('blocker', 'next')
    cross join entities e on e.entity = f.entity and e.kind = 'project'"""
_ACTIVE = "select fact from entity_attributes where entity = ? and aspect = ? and status = 'active'"
_MOVE = """
    update entity_attributes set status = ?1 where fact in (select value from json_each(?2)) and status = ?3
    returning agent_id, id"""

_ALWAYS = (1 << 63) - 1


def lists_of(database: Database, facts: Collection[int]) -> set[List]:
    """Returns the lists of projects that some facts are in."""
    return set(database.execute(_LISTS, (json.dumps(sorted(facts)),)))


def listed(database: Database, topic: int, aspect: str, until_us: int = _ALWAYS) -> dict[int, str]:
    """Returns the facts, with their ids, that the newest session listing any until an instant lists."""
    newest: tuple[int, str, int] | None = None
    for session, at_us, path, latest_us in database.execute(_LISTING, (topic, aspect, until_us)):
        if newest is not None and latest_us < newest[0]:
            break  # nothing older has a newer source
        listing = (at_us, path or "", session)
        newest = max(newest or listing, listing)
    return dict(database.execute(_LISTED, (newest[2], topic, aspect, until_us))) if newest else {}


def settle(database: Database, lists: Collection[List]) -> set[tuple[str, str]]:
    """Updates which facts of some lists are current; returns agent and id of the changed ones."""
    changed: set[tuple[str, str]] = set()
    for topic, aspect in sorted(lists):
        current = listed(database, topic, aspect).keys()
        active = {fact for (fact,) in database.execute(_ACTIVE, (topic, aspect))}
        for status, facts, former in (("past", active - current, "active"), ("active", current - active, "past")):
            if facts:
                changed |= set(database.execute(_MOVE, (status, json.dumps(sorted(facts)), former)))
    return changed
