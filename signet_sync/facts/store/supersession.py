"""Decides by claims which facts supersede which, and finds what a fact replaced and what contradicts it.

A fact is superseded by the first later claim on one of its subjects, so another value changes only its neighbours.
Claims of one instant on one subject have no order: facts with different values contradict each other, and stay active.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import NamedTuple

from signet_sync.facts.subjects import NAMED, REPLACED_BY, VALUED
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import FACTS, path_of

# The number of contradicting facts that are given for one fact.
CONFLICTS = 8
CHAIN = 20

_COLUMNS = ("entity", "subject", "place", "fact", "value")
_REPLACING = (
    "(case substr(c.subject, 1, 1) "
    + " ".join(f"when '{one}' then '{other}'" for one, other in REPLACED_BY.items() if one != other)
    + " else substr(c.subject, 1, 1) end || substr(c.subject, 2))"
)
_HELD = """
    select c.entity, c.subject, c.place, c.fact, c.value
    from json_each(?) k cross join fact_claims c on c.fact = k.value"""
# The claims of the newest source that is not done; of several at one instant, of the one with the greatest path.
_STATED = f"""
    select f.fact, f.entity, s.at_us, s.claims from json_each(?) k cross join entity_attributes f on f.fact = k.value
    cross join attribute_sources s on s.fact = f.fact and s.done = 0
        and s.at_us = (select max(t.at_us) from attribute_sources t where t.fact = f.fact and t.done = 0)
    order by {path_of("s.artifact")}"""
# Facts that are stated in several folders of a project: what replaces them in one says nothing of the others.
_FOLDER = """(case when instr(s.claims, ' @') = 0 then '' else substr(s.claims, instr(s.claims, ' @'),
    instr(substr(s.claims, instr(s.claims, ' @')), '"')) end)"""
_SCATTERED = f"""
    select s.fact from json_each(?) k cross join attribute_sources s on s.fact = k.value and s.done = 0
    where s.claims is not null group by s.fact having min{_FOLDER} <> max{_FOLDER}"""
# Parameters: topic, subject of the claim that came or went, subject that it replaces, place.
_BEFORE = """
    select distinct c.fact from json_each(?) k cross join fact_claims c
        on c.entity = k.value->>0 and c.subject = k.value->>2 and c.place < k.value->>3
        and c.place >= coalesce((select max(p.place) from fact_claims p
            where p.entity = k.value->>0 and p.subject = k.value->>1 and p.place < k.value->>3), -9e18)"""
_NEXT = f"""
    select c.fact, c.entity, {_REPLACING} as replacing, (select min(n.place) from fact_claims n
        where n.entity = c.entity and n.subject = {_REPLACING} and n.place > c.place) as place
    from json_each(?) k cross join fact_claims c on c.fact = k.value"""
_FIRST = """
    select k.value->>0, k.value->>1, k.value->>2, (select min(f.id) from fact_claims n
        cross join entity_attributes f on f.fact = n.fact
        where n.entity = k.value->>0 and n.subject = k.value->>1 and n.place = k.value->>2)
    from json_each(?) k"""
_STATUS = """
    select f.fact, f.agent_id, f.id, f.status, f.superseded_by from json_each(?) k
    cross join entity_attributes f on f.fact = k.value where f.status <> 'done'"""
_SUPERSEDE = "update entity_attributes set status = ?, superseded_by = ? where fact = ?"


def settle(database: Database, facts: Collection[int]) -> set[tuple[str, str]]:
    """Updates the claims of some facts, and which facts are superseded; returns agent and id of the changed ones."""
    given = json.dumps(sorted(facts))
    held = set(database.execute(_HELD, (given,)))
    stated = _stated(database, given)
    columns = ", ".join(_COLUMNS)
    database.executemany(
        "delete from fact_claims where entity = ? and subject = ? and place = ? and fact = ?",
        sorted(row[:4] for row in held - stated),
    )
    database.executemany(f"insert into fact_claims({columns}) values(?, ?, ?, ?, ?)", sorted(stated - held))
    moved = {row[:3] for row in held ^ stated}
    before = [
        [entity, subject, f"{kind}{subject[1:]}", place]
        for entity, subject, place in sorted(moved)
        for kind, replacing in REPLACED_BY.items()
        if replacing == subject[0]
    ]
    affected = {fact for (fact,) in database.execute(_BEFORE, (json.dumps(before),))}
    return _supersede(database, sorted(affected.union(facts)))


def _stated(database: Database, facts: str) -> set[tuple[int, str, int, int, str]]:
    """Returns the claims of some facts by their sources."""
    newest = {row[0]: row for row in database.execute(_STATED, (facts,))}
    scattered = {fact for (fact,) in database.execute(_SCATTERED, (facts,))}
    return {
        (entity, subject, 2 * at_us + bool(changed), fact, value)
        for fact, entity, at_us, claims in newest.values()
        if fact not in scattered
        for subject, value, changed in json.loads(claims or "[]")
    }


def _supersede(database: Database, facts: list[int]) -> set[tuple[str, str]]:
    """Updates status and successor of some facts; returns agent and id of the changed ones."""
    given = json.dumps(facts)
    following: dict[int, list[tuple[int, int, str]]] = {}
    for fact, entity, subject, place in database.execute(_NEXT, (given,)):
        if place is not None:
            following.setdefault(fact, []).append((place, entity, subject))
    first = {fact: [one for one in some if one[0] == min(some)[0]] for fact, some in following.items()}
    wanted = sorted({(entity, subject, place) for some in first.values() for place, entity, subject in some})
    ids = {row[:3]: row[3] for row in database.execute(_FIRST, (json.dumps(wanted),))}
    outdated = []
    for fact, agent_id, fact_id, status, successor in list(database.execute(_STATUS, (given,))):
        nexts = [ids[entity, subject, place] for place, entity, subject in first.get(fact, ())]
        due = ("superseded", min(nexts)) if nexts else ("active", None)
        if (status, successor) != due:
            outdated.append((*due, fact, agent_id, fact_id))
    database.executemany(_SUPERSEDE, [row[:3] for row in outdated])
    return {row[3:] for row in outdated}


# ── for display ──


class ChainedFact(NamedTuple):
    """A fact in a chain of replacements, by its newest source."""

    id: str
    text: str
    latest_us: int
    path: str


_FORMER = f"""
    select f.superseded_by, f.id, f.text, f.latest_us, f.source_path from json_each(?2) k
    cross join {FACTS} f on f.agent_id = ?1 and f.superseded_by = k.value
    order by f.latest_us desc, f.id"""
_CONFLICTS = f"""
    select distinct f.id, g.id from json_each(?2) k
    cross join entity_attributes f on f.agent_id = ?1 and f.id = k.value and f.status = 'active'
    cross join fact_claims c on c.fact = f.fact and substr(c.subject, 1, 1) in ('{NAMED}', '{VALUED}')
    cross join fact_claims d on d.entity = c.entity and d.subject = c.subject and d.place = c.place
        and d.value <> c.value
    cross join entity_attributes g on g.fact = d.fact and g.status = 'active' and g.fact <> f.fact
    order by f.id, g.id"""


def replaced(database: Database, agent_id: str, ids: Iterable[str]) -> dict[str, list[ChainedFact]]:
    """Returns what each of some facts replaced directly, newest first; by id, without those that replaced nothing."""
    found: dict[str, list[ChainedFact]] = {}
    for successor, *row in database.execute(_FORMER, (agent_id, json.dumps(list(ids)))):
        found.setdefault(successor, []).append(ChainedFact(*row))
    return found


def conflicts(database: Database, agent_id: str, ids: Iterable[str]) -> dict[str, list[str]]:
    """Returns the active facts that contradict each of some facts at the same instant, at most `CONFLICTS`; by id."""
    found: dict[str, list[str]] = {}
    for fact_id, other in database.execute(_CONFLICTS, (agent_id, json.dumps(list(ids)))):
        some = found.setdefault(fact_id, [])
        if len(some) < CONFLICTS:
            some.append(other)
    return found


def chain(database: Database, agent_id: str, fact_id: str) -> list[ChainedFact]:
    """Returns what replaced a fact and what it replaced, itself between them, newest first; `CHAIN` to either side.

    Empty if it neither replaced anything nor was replaced.
    """
    later: list[ChainedFact] = []
    row = _link(database, agent_id, fact_id)
    if row is None:
        return []
    own, successor = row
    while successor is not None and len(later) < CHAIN:
        row = _link(database, agent_id, successor)
        if row is None:
            break
        later.append(row[0])
        successor = row[1]
    earlier: list[ChainedFact] = []
    level = [fact_id]
    while level and len(earlier) < CHAIN:
        some = [one for found in replaced(database, agent_id, level).values() for one in found]
        earlier += some
        level = [one.id for one in some]
    earlier.sort(key=lambda one: (-one.latest_us, one.id))
    found = [*reversed(later), own, *earlier[:CHAIN]]
    return found if len(found) > 1 else []


def _link(database: Database, agent_id: str, fact_id: str) -> tuple[ChainedFact, str | None] | None:
    """Returns a fact and its successor."""
    for *row, successor in database.execute(
        f"select id, text, latest_us, source_path, superseded_by from {FACTS} where agent_id = ? and id = ?",
        (agent_id, fact_id),
    ):
        return ChainedFact(*row), successor
    return None
