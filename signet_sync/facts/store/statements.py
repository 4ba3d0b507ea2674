"""Stores what artifacts state, by session; facts and topics follow from it (`facts.store.facts`).

Wide rows refer to sessions, artifacts, facts and topics by number. Everything runs in the caller's transaction, and
`facts.settle` comes last.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from signet_sync.facts.items import normal
from signet_sync.facts.mentions import project_of
from signet_sync.facts.store.facts import Key
from signet_sync.formats.fact import Aspect, Distilled, EntityKind, Item, Mention
from signet_sync.formats.handle import id_of
from signet_sync.storage.database import batches
from signet_sync.storage.database.batches import Session
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import placeholders

TABLES = ("attribute_sources", "entity_attributes", "entity_mentions", "entities")

_Row = TypeVar("_Row", bound=tuple[Any, ...])


class ArtifactStatements(NamedTuple):
    """What one artifact states, and its origin. `at_us` is the time in microseconds since 1970 UTC."""

    agent_id: str
    session_token: str
    session_id: str
    thread_id: str | None
    project: str | None
    source_path: str
    at_us: int
    distilled: Distilled

    @property
    def session(self) -> Session:
        """Returns the artifact's session."""
        return self.agent_id, self.session_token, self.session_id


class Touched(NamedTuple):
    """Numbers of facts and topics to be settled because their sources changed; `fresh` are facts already up to date."""

    facts: frozenset[int] = frozenset()
    entities: frozenset[int] = frozenset()
    fresh: frozenset[int] = frozenset()


# ── what artifacts state ──


class _SourceRow(NamedTuple):
    fact: int
    at_us: int
    artifact: int
    line: int
    text: str
    done: int
    session: int


class _MentionRow(NamedTuple):
    entity: int
    at_us: int
    artifact: int
    line: int
    name: str
    session: int


class _KeyedStatements(NamedTuple):
    """The statements of one artifact: mentions by kind and norm, items by facts' keys; `about` is their topic."""

    one: ArtifactStatements
    about: Key
    mentions: dict[Key, Mention]
    items: dict[Key, tuple[Key, Item]]


def _keyed(one: ArtifactStatements) -> _KeyedStatements:
    agent = one.agent_id
    owner = _owner(agent, one.project)
    mentions: dict[Key, Mention] = {}
    for mention in (*one.distilled.mentions, owner) if one.distilled.items else one.distilled.mentions:
        mentions.setdefault((agent, entity_id(agent, mention.kind, mention.norm)), mention)
    about = agent, entity_id(agent, owner.kind, owner.norm)
    items: dict[Key, tuple[Key, Item]] = {}
    for item in one.distilled.items:
        items.setdefault((agent, _fact_id(about, item.aspect, item.text)), (about, item))
    return _KeyedStatements(one, about, mentions, items)


def _owner(agent_id: str, project: str | None) -> Mention:
    return project_of(project) or Mention("agent", agent_id, agent_id, 1)


def _fact_id(about: Key, aspect: Aspect, text: str) -> str:
    return id_of("f", *about, aspect, normal(text))


@lru_cache(maxsize=1_000)
def entity_id(agent_id: str, kind: EntityKind, norm: str) -> str:
    """Returns the id of a topic; facts are about a `project`, or about the `agent` if there is none."""
    return id_of("x", agent_id, kind, norm)


def outdated(database: Database, agent_id: str, project: str, stated: Iterable[tuple[Aspect, str]]) -> set[str]:
    """Returns those of some statements about a project that are done, or of an older list."""
    owner = _owner(agent_id, project)
    about = agent_id, entity_id(agent_id, owner.kind, owner.norm)
    texts = {_fact_id(about, aspect, text): text for aspect, text in stated}
    rows = database.execute(
        "select f.id from json_each(?) k cross join entity_attributes f on f.agent_id = ? and f.id = k.value"
        " where f.status <> 'active'",
        (json.dumps(sorted(texts)), agent_id),
    )
    return {texts[one] for (one,) in rows}


class _Numbers(dict[Key, int]):
    """Numbers of facts or topics by agent and id; those without a row are `fresh`, in order of appearance."""

    def __init__(self, database: Database, table: str, column: str, keys: Iterable[Key]) -> None:
        super().__init__()
        wanted = dict.fromkeys(keys)
        for agent_id, some in groupby(sorted(wanted), key=itemgetter(0)):
            for number, key in batches.of_ids(
                database, f"{column}, id", table, agent_id, "id", [one for _, one in some]
            ):
                self[agent_id, key] = number
        last: int = database.value(f"select max({column}) from {table}") or 0
        self.fresh = {key: last + place for place, key in enumerate((key for key in wanted if key not in self), 1)}
        self.update(self.fresh)


def _insert(table: str, columns: Sequence[str]) -> str:
    return f"insert into {table}({', '.join(columns)}) values({placeholders(len(columns))})"


_INSERT_ENTITY = _insert("entities", ("entity", "agent_id", "id", "kind", "norm", "name", "mentions", "latest_us"))
_INSERT_FACT = _insert(
    "entity_attributes",
    ("fact", "agent_id", "id", "entity", "aspect", "status", "sources", "earliest_us", "latest_us", "artifact"),
)
# Counts are updated with the sources, so that a project's sessions are not counted again for each of them.
_COUNT_MENTION = "update entities set mentions = mentions + ? where entity = ?"
_COUNT_SOURCE = "update entity_attributes set sources = sources + ? where fact = ?"

# The rows that follow from what artifacts state, and how many of their first columns are the key.
_STATEMENTS: tuple[tuple[str, type[NamedTuple], int], ...] = (
    ("attribute_sources", _SourceRow, 3),
    ("entity_mentions", _MentionRow, 3),
)


def replace(
    database: Database, sessions: Iterable[Session], stated: Iterable[ArtifactStatements], *, running: bool = False
) -> Touched:
    """Replaces what artifacts of sessions stated before; `facts.settle` has to follow.

    With `running`, what live turns of sessions stated, whose source is the session's number below 0; the statements of
    each have an instant of their own. Equal rows are not written again.
    """
    said = [_keyed(one) for one in stated]
    batches.number(database, {each.one.session for each in said})
    numbers = batches.numbers(database, dict.fromkeys(sessions))
    entities = _Numbers(database, "entities", "entity", (key for each in said for key in each.mentions))
    facts = _Numbers(database, "entity_attributes", "fact", (key for each in said for key in each.items))
    artifacts = batches.artifacts(database, [each.one.source_path for each in said])

    def source(one: ArtifactStatements) -> int:
        return -numbers[one.session] if running else artifacts[one.source_path]

    rows: dict[str, set[Any]] = {table: set() for table, _, _ in _STATEMENTS}
    for each in said:
        one, session = each.one, numbers[each.one.session]
        artifact = source(one)
        rows["entity_mentions"].update(
            _MentionRow(entities[key], one.at_us, artifact, mention.line, mention.name, session)
            for key, mention in each.mentions.items()
        )
        rows["attribute_sources"].update(
            _SourceRow(facts[key], one.at_us, artifact, item.line, item.text, int(item.done), session)
            for key, (_, item) in each.items.items()
        )
    come: dict[str, set[Any]] = {}
    gone: dict[str, set[Any]] = {}
    for table, row, key in _STATEMENTS:
        columns = ", ".join(row._fields)
        held = set(_of_kind(batches.of_values(database, columns, table, "session", numbers.values()), row, running))
        come[table], gone[table] = rows[table] - held, held - rows[table]
        where = " and ".join(f"{name} = ?" for name in row._fields[:key])
        database.executemany(f"delete from {table} where {where}", sorted(one[:key] for one in gone[table]))
    _add_entities(database, said, entities)
    _add_facts(database, said, entities, facts, source)
    for table, row, key in _STATEMENTS:
        in_order = sorted(come[table], key=itemgetter(*range(key)))
        database.executemany(_insert(table, row._fields), in_order)
    named = _tally(database, _COUNT_MENTION, come["entity_mentions"], gone["entity_mentions"], entities.fresh)
    touched = _tally(database, _COUNT_SOURCE, come["attribute_sources"], gone["attribute_sources"], facts.fresh)
    return Touched(touched, named, frozenset(facts.fresh.values()))


def _of_kind(found: Iterable[_Row], row: type[NamedTuple], running: bool) -> Iterator[_Row]:
    """Yields the rows whose source is a running session, or those whose source is an artifact."""
    place = row._fields.index("artifact")
    return (one for one in found if (one[place] < 0) is running)


def _tally(
    database: Database, count: str, come: Iterable[_Row], gone: Iterable[_Row], fresh: Mapping[Key, int]
) -> frozenset[int]:
    """Updates counts of facts or topics, except fresh ones; returns the numbers of all."""
    counts = Counter(row[0] for row in come)
    touched = set(counts)
    for row in gone:
        counts[row[0]] -= 1
        touched.add(row[0])
    new = set(fresh.values())
    database.executemany(count, [(each, key) for key, each in sorted(counts.items()) if each and key not in new])
    return frozenset(touched)


def _add_entities(database: Database, said: Sequence[_KeyedStatements], numbers: _Numbers) -> None:
    """Inserts missing topics with the values of the newest artifact that mentions them."""
    missing: dict[Key, list[tuple[ArtifactStatements, Mention]]] = {key: [] for key in numbers.fresh}
    for each in said:
        for key, mention in each.mentions.items():
            if key in missing:
                missing[key].append((each.one, mention))
    rows = []
    for key, found in missing.items():
        one, mention = max(found, key=lambda pair: (pair[0].at_us, pair[0].source_path))
        rows.append((numbers[key], *key, mention.kind, mention.norm, mention.name, len(found), one.at_us))
    database.executemany(_INSERT_ENTITY, rows)


def _add_facts(
    database: Database,
    said: Sequence[_KeyedStatements],
    entities: _Numbers,
    numbers: _Numbers,
    source: Callable[[ArtifactStatements], int],
) -> None:
    """Inserts missing facts with the values of the newest artifact that states them."""
    missing: dict[Key, list[tuple[ArtifactStatements, Key, Item]]] = {key: [] for key in numbers.fresh}
    for each in said:
        for key, (about, item) in each.items.items():
            if key in missing:
                missing[key].append((each.one, about, item))
    rows = []
    for key, found in missing.items():
        one, about, item = max(found, key=lambda row: (row[0].at_us, row[0].source_path))
        earliest = min(row[0].at_us for row in found)
        status = "done" if item.done else "active"
        rows.append(
            (
                numbers[key], *key, entities[about], item.aspect, status, len(found), earliest, one.at_us,
                source(one),
            )
        )  # fmt: skip
    database.executemany(_INSERT_FACT, rows)
