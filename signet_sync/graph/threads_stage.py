"""Derives arcs of weeks, epochs of quarters and thread summaries from the sessions of threads.

The cost is proportional to the weeks and quarters that moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from signet_sync.formats.timestamps import quarter_of, quarter_span
from signet_sync.graph import rollups, threads
from signet_sync.graph.nodes import GraphEdge, GraphNode
from signet_sync.graph.nodes_stage import WEEK, Graph, every_week, with_progress
from signet_sync.graph.statements_stage import Statements
from signet_sync.graph.store import nodes
from signet_sync.graph.threads import Thread, ThreadSession
from signet_sync.statements.store import rows
from signet_sync.statements.store.rows import LIVE
from signet_sync.storage.database.connection import Database
from signet_sync.sync.stages import Alive, Change, Deriver, Source

# Kinds of sources that threads move: condensations and thread summaries, by id.
NODE, THREAD = "node", "thread"

_Condensed = tuple[GraphNode, tuple[GraphEdge, ...]]


class Threads(Deriver):
    """Derives arcs, epochs and summaries of threads from the weeks in which they have sessions."""

    name = "threads"
    version = "3"
    tables = ("memory_thread_heads",)
    kinds = frozenset({WEEK})
    after = (Graph.name, Statements.name, LIVE)
    batch = 5000

    def sources(self, database: Database) -> Iterable[Source]:
        """Yields every week of every thread."""
        return every_week(database)

    def clear(self, database: Database) -> None:
        """Deletes condensations and thread summaries."""
        nodes.clear_threads(database)

    def update(self, database: Database, prepared: Sequence[Source], alive: Alive) -> Change:
        """Derives weeks and their quarters again, then the summaries of their threads."""
        change = Change()
        by_thread = groupby(sorted(prepared), key=lambda week: (week.agent_id, week.id))
        for (agent_id, thread_id), some in with_progress(by_thread, alive):
            thread = _thread(database, agent_id, thread_id)
            condensed = _settle_thread(database, thread, [week.session_id for week in some])
            change.sources.update(Source(NODE, agent_id, node_id) for node_id in condensed)
            change.sources.add(Source(THREAD, agent_id, thread_id))
        return change


def _thread(database: Database, agent_id: str, thread_id: str) -> Thread:
    """Returns a thread from its summary, or from any of its sessions; if it has neither, only its id is set."""
    head = nodes.summary_of(database, agent_id, thread_id)
    if head is not None:
        return Thread(agent_id, thread_id, head.thread_key, head.label, head.project, head.session_key)
    for place in nodes.newest_sessions(database, agent_id, thread_id, 1):
        session = (agent_id, place.session_token, place.session_id)
        found = threads.thread_of(nodes.sources(database, session))
        if found is not None:
            return found
    return Thread(agent_id, thread_id, "", "", None, None)


def _settle_thread(database: Database, thread: Thread, weeks: Iterable[str]) -> set[str]:
    """Stores arcs of the weeks, epochs of their quarters, then the thread summary; returns the condensations."""
    agent_id = thread.agent_id
    quarters = set()
    condensed = set()
    for week in weeks:
        quarters.add(quarter_of(week))
        sessions = nodes.sessions_of(database, agent_id, thread.id, week)
        below = [node_id for _, node_id in nodes.summaries_and_compactions(database, agent_id, thread.id, week)]
        arc_id = rollups.arc_id(thread, week)
        condensed.add(_condensed(database, agent_id, arc_id, _arc(database, thread, week, sessions, below)))
    for quarter in quarters:
        arcs = nodes.arcs(database, agent_id, thread.id, *quarter_span(quarter))
        epoch_id = rollups.epoch_id(thread, quarter)
        condensed.add(_condensed(database, agent_id, epoch_id, rollups.epoch(thread, quarter, arcs)))
    _settle_head(database, thread)
    return condensed


def _arc(
    database: Database, thread: Thread, week: str, sessions: Sequence[ThreadSession], below: Iterable[str]
) -> _Condensed | None:
    """Returns an arc with edges to every segment and compaction of its sessions, not only to the best of each."""
    if len(sessions) < 2:
        return None
    stated = rows.of_sessions_still(database, thread.agent_id, thread.id, [one[:3] for one in sessions])
    made = rollups.arc(thread, week, sessions, stated)
    if made is None:
        return None
    node, edges = made
    return node, (*edges, *(GraphEdge(node.agent_id, node.id, child) for child in below))


def _settle_head(database: Database, thread: Thread) -> None:
    newest = nodes.newest_sessions(database, thread.agent_id, thread.id, threads.SUMMARY_SESSIONS)
    if not newest:
        nodes.drop_summary(database, thread.agent_id, thread.id)
        return
    count, earliest = nodes.extent(database, thread.agent_id, thread.id)
    arc = nodes.newest_arc(database, thread.agent_id, thread.id)
    head = threads.summarize(thread, newest, count, earliest, arc)
    nodes.store_summary(database, head)


def _condensed(database: Database, agent_id: str, node_id: str, made: _Condensed | None) -> str:
    if made is None:
        nodes.drop_nodes(database, agent_id, [node_id])
    else:
        nodes.store_condensation(database, *made)
    return node_id
