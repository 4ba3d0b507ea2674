"""Reads what an agent's page may show of the graph: threads, facts, memories, pins, their use, and the newest nodes.

Every query is bounded, so a page costs the same whatever the size of the vault.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from signet_sync.facts.store import future
from signet_sync.formats.fact import SECTION_OF
from signet_sync.formats.timestamps import day_of, parse_instant
from signet_sync.graph.store import nodes
from signet_sync.graph.threads import SUMMARY_SESSIONS, Thread, ThreadSession, row_of, summarize
from signet_sync.memories.score import Use
from signet_sync.memories.store import promotions
from signet_sync.pages.memory_page import NodeLineage, NodeView
from signet_sync.pages.sections import EntityEntry, FactView, MemoryView, PinnedView, SectionInputs, ThreadView
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import NODES

THREADS = 40
FACTS_OF_AN_ASPECT = 24
MEMORIES_OF_A_TYPE = 24
ENTITIES = 40
PINS = 500
USED = 200
# Most children of a node that are counted, and that are named.
CHILDREN = 500
NAMED = 2

_THREAD = (
    "select thread_id, project, session_key, harness, status, sessions, latest_us, sample, next_action, source_ref"
    " from memory_thread_heads where agent_id = ?"
)
_FACT = """
    select f.id, f.aspect, s.text, iif(e.kind = 'project', e.norm, null), f.latest_us, a.source_path
    from {some}entity_attributes f cross join entities e using (entity)
    cross join attribute_sources s on s.fact = f.fact and s.at_us = f.latest_us and s.artifact = f.artifact
    cross join memory_artifacts a on a.id = f.artifact
    where f.agent_id = ?1 and f.status = 'active' and f.latest_us <= ?2 and {which}"""
_ONE_FACT = _FACT.format(some="", which="f.id = ?3")
# The parameter is a JSON list of aspects or types; of each, the newest facts are read.
_NEWEST_FACTS = _FACT.format(
    some="json_each(?3) cross join ",
    which=f"""f.fact in (select fact from entity_attributes where agent_id = ?1 and aspect = json_each.value
        and status = 'active' and latest_us <= ?2 order by latest_us desc, id limit {FACTS_OF_AN_ASPECT})""",
)
_NEXT_FACT = """
    select min((select min(latest_us) from entity_attributes
        where agent_id = ?1 and aspect = json_each.value and status = 'active' and latest_us > ?2))
    from json_each(?3)"""
_MEMORY = "select m.id, m.type, m.content, m.created_at from json_each(?2) cross join memories m on m.agent_id = ?1"
_NEWEST_MEMORIES = f"""{_MEMORY} and m.id in (select id from memories where agent_id = ?1 and type = json_each.value
    order by created_at desc, id limit {MEMORIES_OF_A_TYPE})"""
_PINNED = (
    "select id, source_type, label, (select project from memory_thread_heads h where h.agent_id = n.agent_id"
    f" and h.thread_id = n.thread_id), latest_us, source_ref from {NODES} n"
    " where agent_id = ? and thread_id is not null"
)
_ENTITY = (
    "select id, kind, title, type, status, line, max(updated_us, 0), path from garden_files"
    " where agent_id = ? and file = 'profile' and status <> 'deprecated'"
)
# What the lineage lists: condensations, or nodes that have a file.
_LISTED = (
    "from session_summaries where agent_id = ? and (depth > 0) = ? and source_type <> 'chunk' and thread_id is not null"
)
# With the label of its thread, and the parents that are named.
_NODE = f"""
    select id, kind, source_type, earliest_us, latest_us, session_token, session_id, source_ref,
        (select label from memory_thread_heads h where h.agent_id = n.agent_id and h.thread_id = n.thread_id),
        (select json_group_array(parent_id) from (select parent_id from session_summary_children c
            where c.agent_id = n.agent_id and c.child_id = n.id order by parent_id limit {NAMED}))
    from {NODES} n where agent_id = ? and id = ?"""
# A child of an arc counts by its session's number in the table.
_CHILDREN = """
    select n.latest_us, n.start, n.id, n.source_type, n.session
    from (select child_id from session_summary_children where agent_id = ?1 and parent_id = ?2
        order by child_id limit ?3) c
    cross join session_summaries n on n.agent_id = ?1 and n.id = c.child_id"""


def section_inputs(database: Database, agent_id: str, now_us: int) -> SectionInputs:
    """Returns what page sections may show at `now_us`: the newest of everything, and what is pinned or was used.

    Derived rows count from their own time on, memories and pins at once.
    """
    uses = _uses(database, agent_id, day_of(now_us))
    ids = sorted(uses)
    newest = f"{_THREAD} and latest_us <= ? order by latest_us desc, thread_id limit ?"
    later = f"{_THREAD} and latest_us > ? order by latest_us, thread_id limit ?"
    threads = _rows(database, newest, agent_id, now_us, THREADS) | _rows(database, later, agent_id, now_us, THREADS)
    threads |= _each(database, f"{_THREAD} and thread_id = ?", _of(ids, "t"), agent_id)
    kinds = json.dumps(list(SECTION_OF))
    facts = _rows(database, _NEWEST_FACTS, agent_id, now_us, kinds)
    facts |= _each(database, _ONE_FACT, _of(ids, "f"), agent_id, now_us)
    facts |= future.facts(database, agent_id, now_us)
    memories = _rows(database, _NEWEST_MEMORIES, agent_id, kinds)
    promoted = promotions.dreamed(database, agent_id)
    more = json.dumps(sorted({*_of(ids, "m"), *promoted} - memories.keys()))
    memories |= _rows(database, f"{_MEMORY} and m.id = json_each.value", agent_id, more)
    pinned = [one for one in _of(ids, "skcae") if uses[one].pinned]
    return SectionInputs(
        [*filter(None, (_as_of(database, agent_id, ThreadView(*row), now_us) for row in threads.values()))],
        [FactView(*row) for row in facts.values()],
        [MemoryView(one, kind, text, parse_instant(at) or 0) for one, kind, text, at in memories.values()],
        [PinnedView(*row) for row in _each(database, f"{_PINNED} and id = ?", pinned, agent_id).values()],
        uses,
        promoted,
        [EntityEntry(*row) for row in _entities(database, agent_id)],
    )


def _entities(database: Database, agent_id: str) -> Iterable[tuple[Any, ...]]:
    """Returns the entities changed last, each once: of a folder that was copied, the first by path."""
    # A dict keeps the last row of a key.
    newest = f"{_ENTITY} order by updated_us desc, path desc limit ?"
    return _rows(database, newest, agent_id, ENTITIES).values()


def _as_of(database: Database, agent_id: str, view: ThreadView, now_us: int) -> ThreadView | None:
    """Returns a thread as it is at `now_us`: a session dated in the future must neither hide nor replace the others."""
    if view.latest_us <= now_us:
        return view
    sessions = [
        row_of(ThreadSession, row)
        for row in database.execute(
            "select agent_id, session_token, session_id, thread_id, earliest_us, latest_us, week, node_id, source_type,"
            " source_ref, sentence, status, harness, told from thread_sessions"
            " where agent_id = ? and thread_id = ? and latest_us <= ?"
            " order by latest_us desc, session_token, session_id limit ?",
            (agent_id, view.id, now_us, SUMMARY_SESSIONS),
        )
    ]
    if not sessions:
        return None
    later = database.value(
        "select count(*) from thread_sessions where agent_id = ? and thread_id = ? and latest_us > ?",
        (agent_id, view.id, now_us),
    )
    thread = Thread(agent_id, view.id, "", "", view.project, view.session_key)
    then = summarize(thread, sessions, max(view.sessions - later, 1), sessions[-1].earliest_us, None)
    return view._replace(
        harness=then.harness,
        status=then.status,
        sessions=then.sessions,
        latest_us=then.latest_us,
        sample=then.sample,
        next_action=then.next_action,
        path=then.source_ref,
    )


def next_change(database: Database, agent_id: str, now_us: int) -> int | None:
    """Returns the next instant at which a derived row is no longer in the future."""
    soonest = [
        database.value(
            "select min(latest_us) from memory_thread_heads where agent_id = ? and latest_us > ?", (agent_id, now_us)
        ),
        *(
            database.value(f"select min(latest_us) {_LISTED} and latest_us > ?", (agent_id, condensed, now_us))
            for condensed in (True, False)
        ),
        database.value(_NEXT_FACT, (agent_id, now_us, json.dumps(list(SECTION_OF)))),
    ]
    return min((instant for instant in soonest if instant is not None), default=None)


def lineage(database: Database, agent_id: str, now_us: int, limit: int) -> NodeLineage:
    """Returns the newest condensations, and newest summaries and compactions, at most `limit` of each; ties by id."""
    condensations, sessions = (
        [
            node_id
            for (node_id,) in database.execute(
                f"select id {_LISTED} and latest_us <= ? order by latest_us desc, depth desc, id limit ?",
                (agent_id, condensed, now_us, limit),
            )
        ]
        for condensed in (True, False)
    )
    return NodeLineage(
        _nodes(database, agent_id, condensations),
        _nodes(database, agent_id, sessions),
    )


def _nodes(database: Database, agent_id: str, ids: Iterable[str]) -> Iterator[NodeView]:
    for node_id in ids:
        for row in list(database.execute(_NODE, (agent_id, node_id))):
            yield _node(database, agent_id, row)


def _node(database: Database, agent_id: str, row: tuple[Any, ...]) -> NodeView:
    node_id, kind, source_type, earliest, latest, token, session_id, path, thread, above = row
    children = _children(database, agent_id, node_id, kind)
    if kind == "session":
        path = _transcript(database, agent_id, token, session_id, path) or path
    named, more = tuple(children[:NAMED]), max(len(children) - NAMED, 0)
    parents = tuple(json.loads(above))
    return NodeView(node_id, kind, source_type, thread or "", earliest, latest, parents, named, more, path)


def _children(database: Database, agent_id: str, node_id: str, kind: str) -> list[str]:
    """Returns ids of a node's children: of a condensation newest first, of a session in the order of its text.

    An arc has all segments and compactions of its sessions as children; each session counts once, by its best node.
    """
    found = list(database.execute(_CHILDREN, (agent_id, node_id, CHILDREN)))
    if kind == "session":
        return [row[2] for row in sorted(found, key=lambda row: row[:3])]
    if kind == "arc":
        found.sort(key=lambda row: (_BEST_LAST.index(row[3]), -row[0], row[2]), reverse=True)
        found = list({row[4]: row for row in found}.values())
    return [row[2] for row in sorted(found, key=lambda row: (-row[0], row[2]))]


# The nodes that can represent a session, the best first.
_BEST_LAST = ("summary", "compaction", "chunk")


def _transcript(database: Database, agent_id: str, token: str, session_id: str, path: str) -> str | None:
    """Returns the transcript of the same segment as an artifact, else the newest of its session."""
    beside = f"{path.rpartition('--')[0]}--transcript.md"
    found: str | None = database.value(
        "select source_path from memory_artifacts where agent_id = ? and session_token = ? and session_id = ?"
        " and source_kind = 'transcript' order by source_path = ? desc, captured_us desc, source_path desc limit 1",
        (agent_id, token, session_id, beside),
    )
    return found


def _uses(database: Database, agent_id: str, day: str) -> dict[str, Use]:
    """Returns accesses before the UTC day, the latest used first, and pins; by id."""
    used = [
        *database.execute(
            "select last_day, id, accesses from node_telemetry where agent_id = ? and last_day < ?"
            " order by last_day desc, id limit ?",
            (agent_id, day, USED),
        ),
        # For rows used today, take the counts from before: no access of today changes a page.
        *database.execute(
            "select before_day, id, before from node_telemetry"
            " where agent_id = ? and last_day >= ? and before_day is not null",
            (agent_id, day),
        ),
    ]
    used.sort(key=lambda row: row[1])
    used.sort(key=lambda row: row[0], reverse=True)
    uses = {one: Use(accesses, parse_instant(f"{last}T00:00Z")) for last, one, accesses in used[:USED]}
    for (one,) in database.execute("select id from pins where agent_id = ? order by id limit ?", (agent_id, PINS)):
        uses[one] = uses.get(one, Use())._replace(pinned=True)
    for former in [*_of(uses, "t")]:
        # An id that the thread had before.
        thread = nodes.threads_once_called(database, agent_id, former, 1).get(former)
        if thread is not None:
            uses[thread] = _joined(uses.get(thread, Use()), uses.pop(former))
    return uses


def _joined(one: Use, other: Use) -> Use:
    last = max((use.last_us for use in (one, other) if use.last_us is not None), default=None)
    return Use(one.accesses + other.accesses, last, one.pinned or other.pinned)


def _of(ids: Iterable[str], letters: str) -> Iterator[str]:
    return (one for one in ids if one[:1] in letters)


def _rows(database: Database, sql: str, *bindings: str | int) -> dict[str, tuple[Any, ...]]:
    return {row[0]: row for row in database.execute(sql, bindings)}


def _each(database: Database, sql: str, ids: Iterable[str], *bindings: str | int) -> dict[str, tuple[Any, ...]]:
    return {row[0]: row for one in ids for row in database.execute(sql, (*bindings, one))}
