"""Reads the surroundings of a session: its node, its thread, and the sessions beside it there."""

from typing import NamedTuple

from signet_sync.graph.store import nodes
from signet_sync.graph.threads import ThreadSummary
from signet_sync.recall.store import references
from signet_sync.sessions.store import results
from signet_sync.sessions.store.results import ThreadNeighbour
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.sessions import SessionRef


class GraphPosition(NamedTuple):
    """A session's thread, the sessions beside it there, and its node."""

    thread: ThreadSummary | None
    before: ThreadNeighbour | None
    after: ThreadNeighbour | None
    node: str | None


NOWHERE = GraphPosition(None, None, None, None)


def lineage_of(database: Database, ref: SessionRef) -> GraphPosition:
    """Returns a session's position in the graph."""
    thread_id, before, after = results.find_neighbours(database, ref)
    node = next(iter(references.best(database, ref)), None)
    if node is None:
        return NOWHERE
    thread = nodes.summary_of(database, ref.agent_id, thread_id) if thread_id else None
    return GraphPosition(thread, before, after, node)
