"""Reads what an agent's page may show of the graph: threads, statements, memories, pins and use, and the newest nodes.

Every query is bounded, so a page costs the same whatever the size of the vault.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from signet_sync.formats.statement import SECTION_OF
from signet_sync.formats.timestamps import day_of, parse_instant
from signet_sync.memories.score import Use, day_start, rank, score
from signet_sync.memories.store import promotions
from signet_sync.pages.memory_page import NodeLineage, NodeView
from signet_sync.pages.sections import (
    EntityEntry,
    MemoryView,
    PinnedView,
    SectionInputs,
    StatementView,
    ThreadView,
    section_of,
)
from signet_sync.pages.store.project_inputs import NEWEST_THREADS, THREAD
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import NODES, path_of
from signet_sync.text.sentences import basename

# The tokens that a line costs at least: so many fewer than a page's budget has are read of each kind.
LEAST_LINE = 12
PINS = 500
USED = 200
# Most children of a node that are counted.
CHILDREN = 500

# The second parameter is a JSON list of ids. What is pinned is shown though a newer list leaves it out.
_SOME_STATEMENTS = f"""
    select s.id, s.kind, s.text, nullif(s.project, ''), s.at_us, {path_of("s.artifact")}, '', s.speaker, s.line
    from json_each(?2) cross join statements s
    where s.agent_id = ?1 and s.id = json_each.value and s.newest = 1 and (s.status = 'open' or s.status = 'replaced'
        and exists (select 1 from pins p where p.agent_id = ?1 and p.id = s.id))"""
# The second parameter is a JSON list of kinds or types; of each, the newest are listed.
_LISTED_STATEMENTS = """
    select s.id, s.kind, s.at_us from json_each(?2) cross join statements s on s.statement in (
        select statement from statements where agent_id = ?1 and kind = json_each.value
        and newest = 1 and status = 'open' order by at_us desc, id limit ?3)"""
_LISTED_MEMORIES = """
    select m.id, m.type, m.created_at from json_each(?2) cross join memories m on m.agent_id = ?1
    and m.id in (select id from memories where agent_id = ?1 and type = json_each.value
        order by created_at desc, id limit ?3)"""
_MEMORY = "select m.id, m.type, m.content, m.created_at from json_each(?2) cross join memories m on m.agent_id = ?1"
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
_NODE = f"""
    select n.id, n.kind, n.earliest_us, n.latest_us, n.source_ref, n.label, h.project, h.label
    from {NODES} n left join memory_thread_heads h on h.agent_id = n.agent_id and h.thread_id = n.thread_id
    where n.agent_id = ? and n.id = ?"""
# What an arc's sessions were about, or those of an epoch's arcs; each session counts by its best node.
_SESSIONS_BELOW = f"""
    select distinct t.latest_us, t.sentence, t.source_ref from session_summary_children c
    cross join session_summaries i on i.agent_id = c.agent_id and i.id = c.child_id
    cross join sessions n on n.session = i.session
    cross join thread_sessions t on t.agent_id = n.agent_id and t.session_token = n.session_token
        and t.session_id = n.session_id
    where c.agent_id = ?1 and c.parent_id = ?2 limit {CHILDREN}"""
_BELOW = "select child_id from session_summary_children where agent_id = ? and parent_id = ? order by child_id limit ?"


def section_inputs(database: Database, agent_id: str, now_us: int, budget: int) -> SectionInputs:
    """Returns what page sections of `budget` tokens may show at `now_us`: the best, and what is pinned or was used.

    Threads and nodes count from their own time on, all else at once. Statements and memories are listed by kind, newest
    first, which is the order of their scores; the best of all of them are read.
    """
    most = max(budget // LEAST_LINE, 1)
    uses = _uses(database, agent_id, day_of(now_us))
    ids = sorted(uses)
    threads = _rows(database, NEWEST_THREADS, agent_id, now_us, most)
    threads |= _each(database, f"{THREAD} and thread_id = ?3", _of(ids, "t"), agent_id, now_us)
    listed = _listed(database, agent_id, now_us, most)
    best = listed.ids[:most]
    promoted = promotions.dreamed(database, agent_id)
    statements = _rows(database, _SOME_STATEMENTS, agent_id, json.dumps([*_of(best, "f"), *_of(ids, "f")]))
    wanted = json.dumps(sorted({*_of(best, "m"), *_of(ids, "m"), *promoted}))
    memories = _rows(database, f"{_MEMORY} and m.id = json_each.value", agent_id, wanted)
    pinned = [one for one in _of(ids, "skcae") if uses[one].pinned]
    return SectionInputs(
        [ThreadView(*row) for row in threads.values()],
        [StatementView(*row) for row in statements.values()],
        [MemoryView(one, kind, text, parse_instant(at) or 0) for one, kind, text, at in memories.values()],
        [
            _pinned(database, agent_id, PinnedView(*row))
            for row in _each(database, f"{_PINNED} and id = ?", pinned, agent_id).values()
        ],
        uses,
        promoted,
        [EntityEntry(*row) for row in _entities(database, agent_id, most)],
        Counter(listed.sections[one] for one in listed.ids[most:] if one not in statements and one not in memories),
        listed.cut,
    )


class _Listed(NamedTuple):
    """Ids of statements and memories, the best first; their sections, and the sections that have still more."""

    ids: list[str]
    sections: dict[str, str]
    cut: frozenset[str]


def _listed(database: Database, agent_id: str, now_us: int, limit: int) -> _Listed:
    """Lists the newest statements and memories of each kind by score; what was used is scored again with its use."""
    kinds, today = json.dumps(list(SECTION_OF)), day_start(now_us)
    found: list[tuple[tuple[bool, float, int, str], str, str]] = []
    for one, kind, at_us in database.execute(_LISTED_STATEMENTS, (agent_id, kinds, limit)):
        found.append((rank(score(kind, at_us, today), at_us, one, pinned=False), one, kind))
    counts = Counter(kind for *_, kind in found)
    for one, kind, at in database.execute(_LISTED_MEMORIES, (agent_id, kinds, limit)):
        at_us = parse_instant(at) or 0
        value = score(kind, at_us, today, remembered=True)
        found.append((rank(value, at_us, one, pinned=False), one, kind))
        counts[f"remembered {kind}"] += 1
    found.sort()
    cut = frozenset(section_of(kind.removeprefix("remembered ")) for kind, count in counts.items() if count >= limit)
    return _Listed([one for _, one, _ in found], {one: section_of(kind) for _, one, kind in found}, cut)


def _entities(database: Database, agent_id: str, limit: int) -> Iterable[tuple[Any, ...]]:
    """Returns the entities changed last, each once: of a folder that was copied, the first by path."""
    # A dict keeps the last row of a key.
    newest = f"{_ENTITY} order by updated_us desc, path desc limit ?"
    return _rows(database, newest, agent_id, limit).values()


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
        for one, kind, earliest, latest, path, label, project, thread in list(
            database.execute(_NODE, (agent_id, node_id))
        ):
            name = basename(project) or thread or ""
            if kind == "session":
                yield NodeView(one, kind, name, earliest, latest, 1, [(latest, label, path)])
            else:
                below = [one] if kind == "arc" else _below(database, agent_id, one)
                about = [row for arc in below for row in _sessions_below(database, agent_id, arc)]
                count = len(about) if kind == "arc" else len(below)
                yield NodeView(one, kind, name, earliest, latest, count, sorted(about, reverse=True))


def _pinned(database: Database, agent_id: str, view: PinnedView) -> PinnedView:
    """Adds to a condensation the newest session's artifact: its label has the sentence of that session."""
    if view.path is not None:
        return view
    about = next((node.about for node in _nodes(database, agent_id, [view.id])), ())
    return view._replace(path=about[0][2] if about else None)


def _below(database: Database, agent_id: str, node_id: str) -> list[str]:
    return [child for (child,) in database.execute(_BELOW, (agent_id, node_id, CHILDREN))]


def _sessions_below(database: Database, agent_id: str, arc: str) -> list[tuple[int, str, str]]:
    """Returns instant, sentence and artifact of the sessions that an arc condenses."""
    return list(database.execute(_SESSIONS_BELOW, (agent_id, arc)))


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
    return uses


def _of(ids: Iterable[str], letters: str) -> Iterator[str]:
    return (one for one in ids if one[:1] in letters)


def _rows(database: Database, sql: str, *bindings: str | int) -> dict[str, tuple[Any, ...]]:
    return {row[0]: row for row in database.execute(sql, bindings)}


def _each(database: Database, sql: str, ids: Iterable[str], *bindings: str | int) -> dict[str, tuple[Any, ...]]:
    return {row[0]: row for one in ids for row in database.execute(sql, (*bindings, one))}
