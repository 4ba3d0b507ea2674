"""Rows of what is distilled: what artifacts state, by session; facts and entities follow from it (`index.settling`).

All inside the caller's transaction, and `settle` comes last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from signet_sync.facts.items import normal
from signet_sync.facts.mentions import project_of
from signet_sync.facts.records import Distilled, EntityKind, Mention
from signet_sync.index import settling
from signet_sync.index.database import Database
from signet_sync.index.settling import Fact, Key, columns, marks
from signet_sync.temporal.ids import id_of

Session = tuple[str, str, str]  # agent, token, session id
TABLES = ("attribute_sources", "entity_attributes", "entity_mentions", "entities", "relations")


class Stated(NamedTuple):
    """What one artifact states, and which one it is. `at_us` is when, in microseconds since 1970 UTC."""

    agent_id: str
    session_token: str
    session_id: str
    thread_id: str | None
    project: str | None
    source_path: str
    at_us: int
    distilled: Distilled


class Touched(NamedTuple):
    """Facts and entities (agent, id) whose sources changed: what has to be settled."""

    attributes: frozenset[Key] = frozenset()
    entities: frozenset[Key] = frozenset()

    def and_also(self, other: Touched) -> Touched:
        """Both together, to be settled at once."""
        return Touched(self.attributes | other.attributes, self.entities | other.entities)


# ── what artifacts state ──


class _Source(NamedTuple):
    agent_id: str
    attribute_id: str
    source_path: str
    line: int
    text: str
    done: int
    thread_id: str | None
    session_token: str
    session_id: str
    at_us: int
    entity_id: str
    aspect: str
    slot: str | None


class _Mentioned(NamedTuple):
    agent_id: str
    entity_id: str
    source_path: str
    line: int
    name: str
    session_token: str
    session_id: str
    at_us: int


class _Related(NamedTuple):
    agent_id: str
    from_id: str
    kind: str
    to_id: str
    source_path: str
    line: int
    session_token: str
    session_id: str


class _Rows:
    """The rows that some artifacts make; `entities` gives kind and norm of every entity among them."""

    def __init__(self, stated: Iterable[Stated]) -> None:
        self.entities: dict[Key, tuple[EntityKind, str]] = {}
        self.sources: list[_Source] = []
        self.mentions: list[_Mentioned] = []
        self.relations: list[_Related] = []
        for one in stated:
            owner = project_of(one.project) or Mention("agent", one.agent_id, one.agent_id, 1)
            ids = self._mentions(one, owner)
            self._sources(one, ids.get((owner.kind, owner.norm), ""))
            self._relations(one, ids)

    def _mentions(self, one: Stated, owner: Mention) -> dict[tuple[EntityKind, str], str]:
        """Takes what an artifact speaks of, and what its items are about; gives the ids by kind and norm."""
        agent = one.agent_id
        ids: dict[tuple[EntityKind, str], str] = {}
        for mention in (*one.distilled.mentions, owner) if one.distilled.items else one.distilled.mentions:
            known = (mention.kind, mention.norm)
            if known not in ids:
                key = ids[known] = entity_id(agent, *known)
                self.entities[agent, key] = known
                self.mentions.append(
                    _Mentioned(
                        agent, key, one.source_path, mention.line, mention.name, one.session_token, one.session_id,
                        one.at_us,
                    )
                )  # fmt: skip
        return ids

    def _sources(self, one: Stated, owner: str) -> None:
        agent = one.agent_id
        seen: set[str] = set()
        for item in one.distilled.items:
            key = id_of("f", agent, owner, item.aspect, normal(item.text))
            if key not in seen:
                seen.add(key)
                self.sources.append(
                    _Source(
                        agent, key, one.source_path, item.line, item.text, int(item.done), one.thread_id,
                        one.session_token, one.session_id, one.at_us, owner, item.aspect, item.slot,
                    )
                )  # fmt: skip

    def _relations(self, one: Stated, ids: Mapping[tuple[EntityKind, str], str]) -> None:
        agent = one.agent_id
        seen: set[tuple[str, str, str]] = set()
        for kind, start, end, line in one.distilled.relations:
            if start in ids and end in ids and (key := (ids[start], kind, ids[end])) not in seen:
                seen.add(key)
                self.relations.append(_Related(agent, *key, one.source_path, line, one.session_token, one.session_id))


@lru_cache(maxsize=1_000)
def entity_id(agent_id: str, kind: EntityKind, norm: str) -> str:
    """The id of what an agent's artifacts speak of; facts are about a `project`, or the `agent` where there is none."""
    return id_of("x", agent_id, kind, norm)


def _insert(table: str, row: type[NamedTuple]) -> str:
    return f"insert into {table}({columns(row)}) values({marks(len(row._fields))})"


_OF_SESSION = "agent_id = ? and session_token = ? and session_id = ?"
_INSERT_SOURCE = _insert("attribute_sources", _Source)
_INSERT_MENTION = _insert("entity_mentions", _Mentioned)
_INSERT_RELATION = _insert("relations", _Related)
# Rows to be settled. Their counts are kept in step with the sources, so that nobody counts a project's sessions.
_PLACE_ENTITY = (
    "insert into entities(agent_id, id, kind, norm, name, mentions, latest_us) values(?, ?, ?, ?, '', 0, 0)"
    " on conflict do nothing"
)
_COUNT_MENTION = "update entities set mentions = mentions + ? where agent_id = ? and id = ?"
_PLACE_FACT = (
    "insert into entity_attributes(agent_id, id, entity_id, aspect, slot, text, status, sources, earliest_us,"
    " latest_us, source_path, line, thread_id) values(?, ?, ?, ?, ?, ?, iif(?, 'done', 'active'), 0, ?, ?, ?, ?, ?)"
    " on conflict do nothing"
)
_COUNT_SOURCE = "update entity_attributes set sources = sources + ? where agent_id = ? and id = ?"
_DELETE_SOURCE = (
    "delete from attribute_sources where agent_id = ? and attribute_id = ? and at_us = ? and source_path = ?"
)
_DELETE_MENTION = "delete from entity_mentions where agent_id = ? and entity_id = ? and at_us = ? and source_path = ?"
_DELETE_RELATION = (
    "delete from relations where agent_id = ? and from_id = ? and kind = ? and to_id = ? and source_path = ?"
)


def forget(database: Database, sessions: Iterable[Session]) -> Touched:
    """Deletes what the artifacts of sessions state; `settle` has to follow."""
    return replace(database, sessions, ())


def replace(database: Database, sessions: Iterable[Session], stated: Iterable[Stated]) -> Touched:
    """Puts what artifacts of sessions state in place of what they stated before; `settle` has to follow.

    Equal rows are left alone.
    """
    rows = _Rows(stated)
    sources, mentions, relations = set(rows.sources), set(rows.mentions), set(rows.relations)
    held_sources: set[_Source] = set()
    held_mentions: set[_Mentioned] = set()
    held_relations: set[_Related] = set()
    for session in dict.fromkeys(sessions):
        held_sources.update(_Source(*row) for row in _of_session(database, "attribute_sources", _Source, session))
        held_mentions.update(_Mentioned(*row) for row in _of_session(database, "entity_mentions", _Mentioned, session))
        held_relations.update(_Related(*row) for row in _of_session(database, "relations", _Related, session))
    gone = _Change({}, held_sources - sources, held_mentions - mentions, held_relations - relations)
    come = _Change(rows.entities, sources - held_sources, mentions - held_mentions, relations - held_relations)
    gone.delete(database)
    come.write(database)
    gone.tally(database, -1)
    come.tally(database)
    return gone.touched().and_also(come.touched())


def _of_session(database: Database, table: str, row: type[NamedTuple], session: Session) -> Iterator[tuple[Any, ...]]:
    # Named, since SQLite takes all rows of an agent to be as few as those of a session.
    return database.execute(
        f"select {columns(row)} from {table} indexed by {table}_session where {_OF_SESSION}", session
    )


class _Change(NamedTuple):
    """Rows that come or go; `entities` gives kind and norm of those that come."""

    entities: dict[Key, tuple[EntityKind, str]]
    sources: Collection[_Source]
    mentions: Collection[_Mentioned]
    relations: Collection[_Related]

    def write(self, database: Database) -> None:
        named = sorted({(row.agent_id, row.entity_id) for row in self.mentions})
        database.executemany(_PLACE_ENTITY, [(*key, *self.entities[key]) for key in named])
        database.executemany(_INSERT_MENTION, sorted(self.mentions))
        database.executemany(_INSERT_SOURCE, self._in_order())
        database.executemany(_INSERT_RELATION, sorted(self.relations))

    def delete(self, database: Database) -> None:
        database.executemany(
            _DELETE_SOURCE, [(row.agent_id, row.attribute_id, row.at_us, row.source_path) for row in self._in_order()]
        )
        database.executemany(
            _DELETE_MENTION, sorted((row.agent_id, row.entity_id, row.at_us, row.source_path) for row in self.mentions)
        )
        database.executemany(_DELETE_RELATION, sorted(row[:5] for row in self.relations))

    def tally(self, database: Database, each: int = 1) -> None:
        """Counts the sources of facts and the mentions of entities, up or down."""
        if each > 0:
            database.executemany(
                _PLACE_FACT,
                [
                    (
                        row.agent_id, row.attribute_id, row.entity_id, row.aspect, row.slot, row.text, row.done,
                        row.at_us, row.at_us, row.source_path, row.line, row.thread_id,
                    )
                    for row in self._in_order()
                ],
            )  # fmt: skip
        counts = Counter((row.agent_id, row.attribute_id) for row in self.sources)
        database.executemany(_COUNT_SOURCE, [(each * number, *key) for key, number in sorted(counts.items())])
        counts = Counter((row.agent_id, row.entity_id) for row in self.mentions)
        database.executemany(_COUNT_MENTION, [(each * number, *key) for key, number in sorted(counts.items())])

    def _in_order(self) -> list[_Source]:
        return sorted(self.sources, key=lambda row: row[:3])

    def touched(self) -> Touched:
        return Touched(
            frozenset((row.agent_id, row.attribute_id) for row in self.sources),
            frozenset((row.agent_id, row.entity_id) for row in self.mentions),
        )


# ── what follows from it ──


def settle(database: Database, touched: Touched) -> set[Key]:
    """Makes facts and entities follow what is stated, those touched; gives the facts that may tell something else.

    What stands already is not written again. Touched facts cost themselves and those of the same slots.
    """
    return settling.settle(database, touched.attributes, touched.entities)


# ── reads ──


def fact(database: Database, agent_id: str, fact_id: str) -> Fact | None:
    """One fact of an agent, whatever its status."""
    for row in database.execute(
        f"select {columns(Fact)} from entity_attributes where agent_id = ? and id = ?", (agent_id, fact_id)
    ):
        return Fact(*row)
    return None


def sources(database: Database, agent_id: str, attribute_id: str) -> list[tuple[str, int, str, int]]:
    """Path, line, words and instant of each artifact that states a fact, newest first."""
    return list(
        database.execute(
            "select source_path, line, text, at_us from attribute_sources where agent_id = ? and attribute_id = ?"
            " order by at_us desc, source_path desc",
            (agent_id, attribute_id),
        )
    )


def of_entity(database: Database, agent_id: str, entity_id: str, limit: int = 100) -> list[Fact]:
    """Facts about something: those that hold first, then the newest."""
    return [
        Fact(*row)
        for row in database.execute(
            f"select {columns(Fact)} from entity_attributes indexed by entity_attributes_slot"
            " where agent_id = ? and entity_id = ? order by status <> 'active', latest_us desc, id limit ?",
            (agent_id, entity_id, limit),
        )
    ]


def orphans(database: Database) -> int:
    """Facts, entities and ends of relations that no artifact stands for, and recall lines of what does not hold."""
    return sum(
        int(database.value(f"select count(*) from {what}"))
        for what in (
            "entity_attributes a where not exists (select 1 from attribute_sources s"
            " where s.agent_id = a.agent_id and s.attribute_id = a.id)",
            "entity_attributes a where not exists (select 1 from entities e"
            " where e.agent_id = a.agent_id and e.id = a.entity_id)",
            "entities e where not exists (select 1 from entity_mentions m"
            " where m.agent_id = e.agent_id and m.entity_id = e.id)",
            "relations r where 2 <> (select count(*) from entity_mentions m where m.agent_id = r.agent_id"
            " and m.entity_id in (r.from_id, r.to_id) and m.source_path = r.source_path)",
            "recall_lines l where l.tier = 'fact' and not exists (select 1 from entity_attributes a"
            " where a.agent_id = l.agent_id and a.id = l.id and a.status = 'active')",
        )
    )
