"""How facts, entities and their recall lines follow from what artifacts state, for some of them or for all at once.

The newest source gives a fact its words and says whether it is done. Of the facts under one slot that one holds which
was stated last as not done; each of the others is superseded by the next. All inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from signet_sync.index import lines
from signet_sync.index.database import Database
from signet_sync.index.lines import Line

TIER = "fact"
# What a fact of an aspect is called where `recall` looks for it.
ASPECT_WORDS = {"question": "open question", "next": "next step"}

_CHUNK = 400
_BATCH = 5_000

Key = tuple[str, str]  # agent, id


class Fact(NamedTuple):
    """A row of `entity_attributes`: words, thread, path and line are those of the newest source."""

    agent_id: str
    id: str
    entity_id: str
    aspect: str
    slot: str | None
    text: str
    status: str  # active, superseded, done
    superseded_by: str | None
    sources: int
    earliest_us: int
    latest_us: int
    source_path: str
    line: int
    thread_id: str | None


def columns(row: type[NamedTuple]) -> str:
    """The names of a row's columns, for SQL."""
    return ", ".join(row._fields)


def marks(count: int) -> str:
    """As many question marks as there are values."""
    return ", ".join("?" * count)


# Of a fact's sources (and of an entity's mentions) the newest tells; of several at one instant that of the greatest
# path. `{keys}` selects agent, id and number of sources of those that are to be settled.
_STATED = """
    with keys(agent_id, id, sources) as ({keys})
    select k.agent_id, k.id, s.entity_id, s.aspect, s.slot, s.text, iif(s.done, 'done', 'active'), null, k.sources,
        (select min(t.at_us) from attribute_sources t where t.agent_id = k.agent_id and t.attribute_id = k.id),
        s.at_us, s.source_path, s.line, s.thread_id
    from keys k cross join attribute_sources s on s.agent_id = k.agent_id and s.attribute_id = k.id
        and s.at_us = (select max(t.at_us) from attribute_sources t
            where t.agent_id = k.agent_id and t.attribute_id = k.id)
        and s.source_path = (select max(t.source_path) from attribute_sources t
            where t.agent_id = k.agent_id and t.attribute_id = k.id and t.at_us = s.at_us)
    where true"""
_MENTIONED = """
    with keys(agent_id, id, mentions) as ({keys})
    select k.agent_id, k.id, m.name, k.mentions, m.at_us
    from keys k cross join entity_mentions m on m.agent_id = k.agent_id and m.entity_id = k.id
        and m.at_us = (select max(t.at_us) from entity_mentions t
            where t.agent_id = k.agent_id and t.entity_id = k.id)
        and m.source_path = (select max(t.source_path) from entity_mentions t
            where t.agent_id = k.agent_id and t.entity_id = k.id and t.at_us = m.at_us)"""
_TOLD = [column for column in Fact._fields if column not in ("agent_id", "id", "status", "superseded_by")]
_STORE_FACTS = f"""
    insert into entity_attributes({columns(Fact)}) {_STATED}
    on conflict(agent_id, id) do update set status = excluded.status, superseded_by = null,
        {", ".join(f"{column} = excluded.{column}" for column in _TOLD)}
    where ({", ".join(f"excluded.{column}" for column in _TOLD)}, excluded.status = 'done')
        is not ({", ".join(f"entity_attributes.{column}" for column in _TOLD)}, entity_attributes.status = 'done')"""
_STORE_ENTITIES = f"""
    update entities set name = n.name, mentions = n.mentions, latest_us = n.at_us from ({_MENTIONED}) n
    where entities.agent_id = n.agent_id and entities.id = n.id
        and (entities.name, entities.mentions, entities.latest_us) is not (n.name, n.mentions, n.at_us)"""
_DROP_FACTS = """
    delete from entity_attributes where not exists (select 1 from attribute_sources s
        where s.agent_id = entity_attributes.agent_id and s.attribute_id = entity_attributes.id)"""
_DROP_ENTITIES = """
    delete from entities where not exists (select 1 from entity_mentions m
        where m.agent_id = entities.agent_id and m.entity_id = entities.id)"""
# Which fact of a slot holds, where that is not what stands: the one that was stated last as not done. Each of the
# others is superseded by the next one, not by the last: one more value leaves all but two of them as they are.
_STANDING = """
    select agent_id, id, next from (
        select agent_id, id, status, superseded_by,
            lead(id) over (partition by agent_id, entity_id, aspect, slot order by open_us, id) as next
        from (select a.*, (select max(s.at_us) from attribute_sources s
                where s.agent_id = a.agent_id and s.attribute_id = a.id and s.done = 0) as open_us
            from entity_attributes a {which}))
    where status <> 'done'
        and (status, superseded_by) is not (iif(next is null, 'active', 'superseded'), next)"""
# Named, since SQLite takes all rows of an agent to be as few as those of a slot.
_OF_SLOT = "indexed by entity_attributes_slot where a.agent_id = ? and a.entity_id = ? and a.aspect = ? and a.slot = ?"
_SUPERSEDE = "update entity_attributes set status = ?, superseded_by = ? where agent_id = ? and id = ?"
_TOLD_LINES = """
    select a.agent_id, a.id, a.text, a.aspect, iif(e.kind = 'project', e.name, null)
    from (select * from entity_attributes where status = 'active'{which}) a
        join entities e on e.agent_id = a.agent_id and e.id = a.entity_id"""


def settle(database: Database, attributes: Collection[Key], entities: Collection[Key]) -> None:
    """Makes some facts and entities follow their sources, and the facts under the same slots."""
    slots = _slots(database, attributes)
    for where, bindings in _some(entities):
        database.execute(f"{_DROP_ENTITIES} and {where}", bindings)
        keys = f"select agent_id, id, mentions from entities where {where}"
        database.execute(_STORE_ENTITIES.format(keys=keys), bindings)
    for where, bindings in _some(attributes):
        database.execute(f"{_DROP_FACTS} and {where}", bindings)
        keys = f"select agent_id, id, sources from entity_attributes where {where}"
        database.execute(_STORE_FACTS.format(keys=keys), bindings)
    changed = set(attributes)
    for slot in sorted(slots | _slots(database, attributes)):
        changed |= _supersede(database, _STANDING.format(which=_OF_SLOT), slot)
    _put_lines(database, changed)


def settle_all(database: Database) -> None:
    """Makes every fact and entity follow its sources."""
    database.execute(_DROP_ENTITIES)
    keys = "select agent_id, entity_id, count(*) from entity_mentions group by agent_id, entity_id"
    database.execute(_STORE_ENTITIES.format(keys=keys))
    database.execute(_DROP_FACTS)
    keys = "select agent_id, attribute_id, count(*) from attribute_sources group by agent_id, attribute_id"
    database.execute(_STORE_FACTS.format(keys=keys))
    _supersede(database, _STANDING.format(which="where a.slot is not null"), ())
    _put_all_lines(database)


def _some(keys: Iterable[Key]) -> Iterator[tuple[str, list[str]]]:
    """Conditions and bindings that select keys, some at a time."""
    by_agent: dict[str, list[str]] = {}
    for agent_id, key in sorted(keys):
        by_agent.setdefault(agent_id, []).append(key)
    for agent_id, ids in by_agent.items():
        for start in range(0, len(ids), _CHUNK):
            chunk = ids[start : start + _CHUNK]
            yield f"agent_id = ? and id in ({marks(len(chunk))})", [agent_id, *chunk]


def _slots(database: Database, keys: Iterable[Key]) -> set[tuple[str, ...]]:
    """Agent, entity, aspect and slot of some facts."""
    found: set[tuple[str, ...]] = set()
    for where, bindings in _some(keys):
        found.update(
            database.execute(
                f"select agent_id, entity_id, aspect, slot from entity_attributes where slot is not null and {where}",
                bindings,
            )
        )
    return found


def _supersede(database: Database, standing: str, slot: Sequence[str]) -> set[Key]:
    """Stores which facts hold and which are superseded, by whom; gives those that changed."""
    rows = list(database.execute(standing, slot))
    database.executemany(
        _SUPERSEDE,
        [
            ("active" if following is None else "superseded", following, agent_id, key)
            for agent_id, key, following in rows
        ],
    )
    return {(agent_id, key) for agent_id, key, _ in rows}


# ── recall lines ──


def _line(row: Sequence[Any]) -> Line:
    agent_id, key, text, aspect, project = row
    return Line(agent_id, TIER, key, " · ".join(filter(None, (text, ASPECT_WORDS.get(aspect, aspect), project))))


def _put_lines(database: Database, changed: Iterable[Key]) -> None:
    for where, bindings in _some(changed):
        agent_id, ids = bindings[0], bindings[1:]
        told = [_line(row) for row in database.execute(_TOLD_LINES.format(which=f" and {where}"), bindings)]
        lines.drop(database, agent_id, sorted(set(ids) - {line.id for line in told}))
        lines.put(database, told)


def _put_all_lines(database: Database) -> None:
    stale: dict[str, list[str]] = {}
    for agent_id, key in database.execute(
        "select l.agent_id, l.id from recall_lines l where l.tier = ? and not exists (select 1 from entity_attributes a"
        " where a.agent_id = l.agent_id and a.id = l.id and a.status = 'active')",
        (TIER,),
    ):
        stale.setdefault(agent_id, []).append(key)
    for agent_id, ids in stale.items():
        lines.drop(database, agent_id, ids)
    none = not database.value("select exists(select 1 from recall_lines where tier = ?)", (TIER,))
    store = lines.add if none else lines.put
    batch: list[Line] = []
    for row in database.execute(_TOLD_LINES.format(which="")):
        batch.append(_line(row))
        if len(batch) == _BATCH:
            store(database, batch)
            batch = []
    store(database, batch)
