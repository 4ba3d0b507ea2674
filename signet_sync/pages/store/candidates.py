"""Reads what an agent's page may show of the graph: threads, statements, memories, pins and use, and the newest nodes.

Every query is bounded, so a page costs the same whatever the size of the vault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import islice, product
from typing import Any

from signet_sync.formats.statement import SECTION_OF
from signet_sync.formats.timestamps import day_of, parse_instant, quarter_of, quarter_span, week_of, week_span
from signet_sync.memories.score import day_start, rank, score
from signet_sync.memories.store import promotions
from signet_sync.pages.memory_page import NodeView
from signet_sync.pages.sections import (
    PinnedView,
    SectionInputs,
    ThreadView,
    section_of,
)
from signet_sync.pages.store import project_inputs
from signet_sync.pages.store.project_inputs import NEWEST_THREADS, THREAD
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import NODES
from signet_sync.text.sentences import basename

NODES_LISTED = 200
COUNTED = 400  # of each kind, of what was not read

# What still holds of a kind, and what was remembered of a type, newest first: as a page reads them, one by one.
_NEWEST = (
    """select id, at_us from statements where agent_id = ? and kind = ? and newest = 1 and status = 'open'
        order by at_us desc, id limit ?""",
    "select id, created_at from memories where agent_id = ? and type = ? order by created_at desc, id limit ?",
)
_PINNED = (
    "select id, source_type, label, (select project from memory_thread_heads h where h.agent_id = n.agent_id"
    f" and h.thread_id = n.thread_id), latest_us, source_ref from {NODES} n"
    " where agent_id = ? and thread_id is not null"
)
# What the lineage lists: condensations, or nodes that have a file.
_LISTED = (
    "from session_summaries where agent_id = ? and (depth > 0) = ? and source_type <> 'chunk' and thread_id is not null"
)
_NODE = f"""
    select n.id, n.kind, n.thread_id, n.earliest_us, n.latest_us, n.source_ref, n.label, h.project, h.label
    from {NODES} n left join memory_thread_heads h on h.agent_id = n.agent_id and h.thread_id = n.thread_id
    where n.agent_id = ? and n.id = ?"""
# What the sessions of a thread between two instants were about, those of weeks that are condensed.
_ABOUT = """
    select t.latest_us, t.sentence, t.source_ref from thread_sessions t
    where t.agent_id = ?1 and t.thread_id = ?2 and t.latest_us between ?3 and ?4
    and exists(select 1 from thread_sessions o where o.agent_id = ?1 and o.thread_id = ?2 and o.week = t.week
        and o.rowid <> t.rowid)
    order by t.latest_us desc, t.sentence desc, t.source_ref desc"""
_PARTS = {
    "arc": "select count(*) from thread_sessions where agent_id = ? and thread_id = ? and latest_us between ? and ?",
    "epoch": "select count(*) from session_summary_children where agent_id = ?1 and parent_id = ?",
}


def section_inputs(database: Database, agent_id: str, now_us: int, limit: int) -> SectionInputs:
    """Returns what page sections with room for `limit` lines may show at `now_us`, and what is pinned or used.

    Threads and nodes count from their own time on, all else at once.
    """
    uses = project_inputs.uses(database, agent_id, day_of(now_us))
    ids = sorted(uses)
    threads = {row[0]: row for row in database.execute(NEWEST_THREADS, (agent_id, now_us, limit))}
    threads |= _read_each(database, f"{THREAD} and thread_id = ?3", _select(ids, "t"), agent_id, now_us)
    lists = [_rank_newest(database, *one, agent_id, now_us, limit) for one in product((False, True), SECTION_OF)]
    listed = [one for _, one in islice(merge(*lists), limit)]
    promoted = promotions.list_dreamed(database, agent_id)
    statements = project_inputs.statements(database, agent_id, [*_select(listed, "f"), *_select(ids, "f")])
    wanted = {*_select(listed, "m"), *_select(ids, "m"), *promoted}
    memories = project_inputs.memories(database, agent_id, sorted(wanted))
    kinds = [*(one.kind for one in statements.values()), *(one.type for one in memories.values())]
    pinned = [one for one in _select(ids, "skcae") if uses[one].pinned]
    return SectionInputs(
        [ThreadView(*row) for row in threads.values()],
        list(statements.values()),
        list(memories.values()),
        [
            _pinned(database, agent_id, PinnedView(*row))
            for row in _read_each(database, f"{_PINNED} and id = ?", pinned, agent_id).values()
        ],
        uses,
        promoted,
        project_inputs.entities(database, agent_id, limit),
        *_count_unread(database, agent_id, kinds),
    )


_Rank = tuple[bool, float, int, str]


def _rank_newest(
    database: Database, remembered: bool, kind: str, agent_id: str, now_us: int, limit: int
) -> Iterator[tuple[_Rank, str]]:
    """Yields the newest statements or memories of a kind, best first; each is read when it is asked for."""
    today = day_start(now_us)
    for one, at in database.execute(_NEWEST[remembered], (agent_id, kind, limit)):
        at_us = parse_instant(at) or 0 if remembered else at
        yield rank(score(kind, at_us, today, remembered=remembered), at_us, one, pinned=False), one


def _count_unread(database: Database, agent_id: str, read: Iterable[str]) -> tuple[Counter[str], frozenset[str]]:
    """Counts by section what still holds and was not `read`, given by kind; returns also where there may be more."""
    unread, cut = Counter[str](), set[str]()
    for sql, kind in product(_NEWEST, SECTION_OF):
        held = database.value(f"select count(*) from ({sql})", (agent_id, kind, COUNTED))
        unread[section_of(kind)] += held
        cut |= {section_of(kind)} if held >= COUNTED else set()
    return unread - Counter(map(section_of, read)), frozenset(cut)


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


def lineage(database: Database, agent_id: str, now_us: int, *, condensed: bool) -> Iterator[NodeView]:
    """Yields the newest condensations, or summaries and compactions, of an agent, ties by id."""
    ids = database.execute(
        f"select id {_LISTED} and latest_us <= ? order by latest_us desc, depth desc, id limit {NODES_LISTED}",
        (agent_id, condensed, now_us),
    )
    return _nodes(database, agent_id, (one for (one,) in ids))


def _nodes(database: Database, agent_id: str, ids: Iterable[str]) -> Iterator[NodeView]:
    """Yields nodes, and the words of their sessions; each is read when it is asked for: a page shows a few of them."""
    found = (row for one in ids for row in list(database.execute(_NODE, (agent_id, one))))
    for one, kind, thread_id, earliest, latest, path, label, project, thread in found:
        name = basename(project) or thread or ""
        if kind == "session":
            yield NodeView(one, kind, name, earliest, latest, 1, [(latest, label, path)])
        else:
            week = week_of(latest)
            span = week_span(week) if kind == "arc" else quarter_span(quarter_of(week))
            below = agent_id, thread_id, *span
            parts = database.value(_PARTS[kind], below if kind == "arc" else (agent_id, one))
            yield NodeView(one, kind, name, earliest, latest, parts, database.execute(_ABOUT, below))


def _pinned(database: Database, agent_id: str, view: PinnedView) -> PinnedView:
    """Adds to a condensation the newest session's artifact: its label has the sentence of that session."""
    if view.path is not None:
        return view
    about = next((one for node in _nodes(database, agent_id, [view.id]) for one in node.about), None)
    return view._replace(path=about[2] if about else None)


def _select(ids: Iterable[str], letters: str) -> Iterator[str]:
    return (one for one in ids if one[:1] in letters)


def _read_each(database: Database, sql: str, ids: Iterable[str], *bindings: str | int) -> dict[str, tuple[Any, ...]]:
    return {row[0]: row for one in ids for row in database.execute(sql, (*bindings, one))}
