"""Derives arcs of weeks, epochs of quarters and thread summaries from the sessions of threads.

The cost is proportional to the weeks and quarters that moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from signet_sync.formats.timestamps import quarter_of, quarter_span
from signet_sync.graph import rollups, threads
from signet_sync.graph.nodes_stage import WEEK, Graph, every_week, with_progress
from signet_sync.graph.statements_stage import Statements
from signet_sync.graph.store import nodes
from signet_sync.graph.threads import Thread
from signet_sync.statements.store import rows
from signet_sync.statements.store.rows import LIVE
from signet_sync.storage.database.connection import Database
from signet_sync.sync.stages import Alive, Change, Deriver, Source


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
        by_thread = groupby(sorted(prepared), key=lambda week: (week.agent_id, week.id))
        for (agent_id, thread_id), some in with_progress(by_thread, alive):
            thread, weeks = _thread(database, agent_id, thread_id), [week.session_id for week in some]
            for week in weeks:
                sessions = nodes.sessions_of(database, agent_id, thread_id, week)
                stated = rows.of_sessions_still(database, agent_id, thread_id, [one[:3] for one in sessions])
                arc = rollups.arc(thread, week, sessions, stated) if len(sessions) > 1 else None
                # Edges to every segment and compaction of its sessions, not only to the best of each.
                below = {one.node_id for one in sessions} if arc else set()
                below.update(nodes.summaries_and_compactions(database, agent_id, thread_id, week) if arc else ())
                nodes.store_condensation(database, agent_id, rollups.arc_id(thread, week), arc, below)
            for quarter in {quarter_of(week) for week in weeks}:
                arcs = nodes.arcs(database, agent_id, thread_id, *quarter_span(quarter))
                epoch, epoch_id = rollups.epoch(thread, quarter, arcs), rollups.epoch_id(thread, quarter)
                nodes.store_condensation(database, agent_id, epoch_id, epoch, {one.id for one in arcs} if epoch else ())
            newest = nodes.newest_sessions(database, agent_id, thread_id, threads.SUMMARY_SESSIONS)
            extent = nodes.extent(database, agent_id, thread_id)
            head = threads.summarize(thread, newest, *extent) if newest else None
            nodes.store_summary(database, agent_id, thread_id, head)
        return Change()


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
