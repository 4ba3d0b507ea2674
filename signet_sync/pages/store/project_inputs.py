"""Reads what a session's context may show: of its own project, of the person, of other projects. Read-only, bounded.

Imports no slow module: a harness waits for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from signet_sync.facts.store import live_sources
from signet_sync.formats.fact import SECTION_OF
from signet_sync.formats.handle import id_of
from signet_sync.formats.paths import RUNNING, running_session
from signet_sync.formats.timestamps import day_of, parse_instant
from signet_sync.graph.store import quotes
from signet_sync.memories.score import Use
from signet_sync.pages.project_context import ProjectInputs
from signet_sync.pages.sections import EntityEntry, FactView, MemoryView, ThreadView
from signet_sync.pages.store.warnings import warnings
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import FACTS, path_of
from signet_sync.sync.store.passes import halt_message
from signet_sync.text.sentences import basename

THREADS = 400
FACTS_OF_AN_ASPECT = 60
MEMORIES_OF_A_TYPE = 60
ENTITIES = 20
PINS = 100

OF_PROJECT = ("decision", "constraint", "blocker", "next", "question", "note")
OF_PERSON = ("preference", "person")

_THREADS = (
    "select thread_id, project, session_key, harness, status, sessions, latest_us, sample, next_action, source_ref,"
    " told ->> '$.blockers[0]', told ->> '$.said_by[0]', told ->> '$.said_by[1]', node_id"
    " from memory_thread_heads where agent_id = ? and latest_us <= ? order by latest_us desc, thread_id limit ?"
)
# The parameters are JSON lists of aspects and of numbers of topics; of each pair the newest facts are read.
_FACT = f"""
    select f.id, f.aspect, s.text, iif(e.kind = 'project', e.norm, null), f.latest_us, {path_of("f.artifact")}
    from {{some}} cross join entities e using (entity)
    cross join attribute_sources s on s.fact = f.fact and s.at_us = f.latest_us and s.artifact = f.artifact
    where f.agent_id = ?1 and f.status {{among}} and f.latest_us <= ?2"""
_OF_TOPICS = _FACT.format(
    among="= 'active'",
    some=f"""(select a.value as aspect, t.value as topic from json_each(?3) a cross join json_each(?4) t) w
        cross join entity_attributes f on f.fact in (select fact from entity_attributes
            where entity = w.topic and aspect = w.aspect and status = 'active' and latest_us <= ?2
            order by latest_us desc, id limit {FACTS_OF_AN_ASPECT})""",
)
_OF_ASPECTS = _FACT.format(
    among="= 'active'",
    some=f"""json_each(?3) w cross join entity_attributes f on f.fact in (select fact from entity_attributes
        where agent_id = ?1 and aspect = w.value and status = 'active' and latest_us <= ?2
        order by latest_us desc, id limit {FACTS_OF_AN_ASPECT})""",
)
# What is pinned is shown though it is of an older list.
_BY_ID = _FACT.format(
    among="in ('active', 'past')",
    some="json_each(?3) w cross join entity_attributes f on f.agent_id = ?1 and f.id = w.value",
)
_MEMORY = "select m.id, m.type, m.content, m.created_at from json_each(?2) j cross join memories m on m.agent_id = ?1"
_NEWEST_MEMORIES = f"""{_MEMORY} and m.id in (select id from memories where agent_id = ?1 and type = j.value
    order by created_at desc, id limit {MEMORIES_OF_A_TYPE})"""
_ENTITIES = (
    "select id, kind, title, type, status, line, max(updated_us, 0), path from garden_files"
    " where agent_id = ? and file = 'profile' and status <> 'deprecated' order by updated_us desc, path desc limit ?"
)


def names(database: Database, agent_id: str, belongs: Callable[[str | None], bool]) -> tuple[str, ...]:
    """Returns the names of the folders by which sessions recorded the project at hand."""
    heads = "select project from memory_thread_heads where agent_id = ? order by latest_us desc limit ?"
    recorded = [project for (project,) in database.execute(heads, (agent_id, THREADS))]
    own = filter(belongs, [*recorded, *live_sources.projects(database, agent_id)])
    return tuple(dict.fromkeys(filter(None, map(basename, own))))


def project_inputs(
    database: Database,
    agent_id: str,
    now_us: int,
    belongs: Callable[[str | None], bool],
    folder: str | None = None,
    without: str = "",
) -> ProjectInputs:
    """Returns what a context may show at `now_us`; `belongs` tells whether a recorded project is the one at hand.

    `folder` is where work begins or goes on; the session called `without` is not quoted to itself.
    """
    threads = [ThreadView(*row) for row in database.execute(_THREADS, (agent_id, now_us, THREADS))]
    own = [one for one in threads if belongs(one.project)]
    running = filter(belongs, live_sources.projects(database, agent_id))
    topics = json.dumps(_topics(database, agent_id, [*(one.project for one in own), *running]))
    facts = _facts(database, _OF_TOPICS, agent_id, now_us, json.dumps(OF_PROJECT), topics)
    personal = _facts(database, _OF_ASPECTS, agent_id, now_us, json.dumps(OF_PERSON))
    pinned_ids = "select id from pins where agent_id = ? order by id limit ?"
    pins = [one for (one,) in database.execute(pinned_ids, (agent_id, PINS))]
    pinned = _facts(database, _BY_ID, agent_id, now_us, json.dumps(pins))
    personal |= {one: fact for one, fact in pinned.items() if one not in facts}
    memories = _memories(database, _NEWEST_MEMORIES, agent_id, json.dumps(list(SECTION_OF)))
    memories |= _memories(database, f"{_MEMORY} and m.id = j.value", agent_id, json.dumps(pins))
    entities = [EntityEntry(*row) for row in database.execute(_ENTITIES, (agent_id, ENTITIES))]
    shown = (*facts, *personal, *memories)
    return ProjectInputs(
        tuple(own),
        tuple(facts.values()),
        tuple(personal.values()),
        tuple(memories.values()),
        tuple({one.id: one for one in reversed(entities)}.values()),
        tuple(one for one in threads if not belongs(one.project)),
        _uses(database, agent_id, shown, pins, day_of(now_us)),
        "; ".join(warnings(database, agent_id, halt_message(database))),
        quotes.of_newest(database, agent_id, [one.id for one in own], now_us, folder, without),
    )


def recorded_origin(database: Database, agent_id: str, root: str) -> str | None:
    """Returns the origin of a repository's root, if sessions recorded exactly one."""
    rows = database.execute(
        "select distinct origin from session_projects where agent_id = ? and root = ? and origin > '' limit 2",
        (agent_id, root),
    )
    origins = [origin for (origin,) in rows]
    return origins[0] if len(origins) == 1 else None


def sessions_of(database: Database, paths: Iterable[str]) -> dict[str, str]:
    """Returns by path of an artifact, or of a running session's source, the id of its session."""
    wanted = set(paths)
    rows = database.execute(
        "select a.source_path, a.session_id from json_each(?) p"
        " cross join memory_artifacts a on a.source_path = p.value",
        (json.dumps(sorted(wanted)),),
    )
    return {**dict(rows), **{path: session for path in wanted if (session := running_session(path)) is not None}}


def of_session(database: Database, agent_id: str, session_id: str, ids: Iterable[str]) -> set[str]:
    """Returns those of some memories that come from a session alone, and of some facts that it said last, running."""
    rows = database.execute(
        "select s.memory_id from json_each(?1) j"
        " cross join memory_sources s on s.agent_id = ?2 and s.memory_id = j.value"
        " group by s.memory_id having min(s.session_id = ?3) = 1"
        f" union all select f.id from json_each(?1) j cross join {FACTS} f on f.agent_id = ?2 and f.id = j.value"
        " where f.source_path = ?4",
        (json.dumps(list(ids)), agent_id, session_id, RUNNING + session_id),
    )
    return {one for (one,) in rows}


def _topics(database: Database, agent_id: str, projects: Iterable[str | None]) -> tuple[int, ...]:
    """Returns the numbers of the topics that are projects of threads."""
    norms = {project.strip().rstrip("/") or "/" for project in projects if project}
    ids = json.dumps([id_of("x", agent_id, "project", norm) for norm in sorted(norms)])
    rows = database.execute(
        "select e.entity from json_each(?) j cross join entities e on e.agent_id = ? and e.id = j.value",
        (ids, agent_id),
    )
    return tuple(entity for (entity,) in rows)


def _facts(database: Database, sql: str, *bindings: str | int) -> dict[str, FactView]:
    return {row[0]: FactView(*row) for row in database.execute(sql, bindings)}


def _memories(database: Database, sql: str, *bindings: str) -> dict[str, MemoryView]:
    rows = database.execute(sql, bindings)
    return {one: MemoryView(one, kind, text, parse_instant(at) or 0) for one, kind, text, at in rows}


def _uses(database: Database, agent_id: str, ids: Iterable[str], pins: Iterable[str], day: str) -> dict[str, Use]:
    """Returns accesses before the UTC day, and pins."""
    rows: Iterable[tuple[Any, ...]] = database.execute(
        "select t.id, t.accesses, t.last_day from json_each(?2) j cross join node_telemetry t on t.agent_id = ?1"
        " and t.id = j.value and t.last_day < ?3",
        (agent_id, json.dumps(list(ids)), day),
    )
    uses = {one: Use(accesses, parse_instant(f"{last}T00:00Z")) for one, accesses, last in rows}
    for one in pins:
        uses[one] = uses.get(one, Use())._replace(pinned=True)
    return uses
