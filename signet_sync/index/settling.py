"""Makes facts and entities follow from what artifacts state, and says by which lines `recall` finds facts.

The newest source gives a fact its words and says whether it is done. Of the facts under one slot that one holds which
was stated last as not done; each of the others is superseded by the next. All inside the caller's transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from signet_sync.index.database import Database
from signet_sync.index.lines import Line

TIER = "fact"
# What a fact of an aspect is called where `recall` looks for it.
ASPECT_WORDS = {"question": "open question", "next": "next step"}

_CHUNK = 400

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
# others is superseded by the next one, not by the last: one more value leaves all but two of them as they are. The
# index is named, since SQLite takes all rows of an agent to be as few as those of a slot.
_STANDING = """
    select agent_id, id, next from (
        select agent_id, id, status, superseded_by,
            lead(id) over (partition by agent_id, entity_id, aspect, slot order by open_us, id) as next
        from (select a.*, (select max(s.at_us) from attribute_sources s
                where s.agent_id = a.agent_id and s.attribute_id = a.id and s.done = 0) as open_us
            from entity_attributes a indexed by entity_attributes_slot
            where a.agent_id = ? and a.entity_id = ? and a.aspect = ? and a.slot = ?))
    where status <> 'done'
        and (status, superseded_by) is not (iif(next is null, 'active', 'superseded'), next)"""
_SUPERSEDE = "update entity_attributes set status = ?, superseded_by = ? where agent_id = ? and id = ?"
_TOLD_LINES = """
    select a.agent_id, a.id, a.text, a.aspect, iif(e.kind = 'project', e.name, null)
    from (select * from entity_attributes where status = 'active'{which}) a
        join entities e on e.agent_id = a.agent_id and e.id = a.entity_id"""


def settle(database: Database, attributes: Collection[Key], entities: Collection[Key]) -> set[Key]:
    """Makes some facts and entities follow their sources, and the facts under the same slots; gives these facts."""
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
        changed |= _supersede(database, slot)
    return changed


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


def _supersede(database: Database, slot: Sequence[str]) -> set[Key]:
    """Stores which facts of a slot hold and which are superseded, by whom; gives those that changed."""
    rows = list(database.execute(_STANDING, slot))
    database.executemany(
        _SUPERSEDE,
        [
            ("active" if following is None else "superseded", following, agent_id, key)
            for agent_id, key, following in rows
        ],
    )
    return {(agent_id, key) for agent_id, key, _ in rows}


# ── recall lines ──


def active(database: Database) -> list[Key]:
    """Every fact that holds."""
    return list(database.execute("select agent_id, id from entity_attributes where status = 'active'"))


def lines(database: Database, agent_id: str, ids: Collection[str]) -> list[Line]:
    """The lines by which `recall` finds those of some facts that hold."""
    keys = [(agent_id, key) for key in ids]
    return [
        _line(row)
        for where, bindings in _some(keys)
        for row in database.execute(_TOLD_LINES.format(which=f" and {where}"), bindings)
    ]


def _line(row: Sequence[Any]) -> Line:
    agent_id, key, text, aspect, project = row
    return Line(agent_id, TIER, key, " · ".join(filter(None, (text, ASPECT_WORDS.get(aspect, aspect), project))))
