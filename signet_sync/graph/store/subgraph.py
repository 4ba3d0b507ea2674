"""Reads a part of one agent's temporal graph, small enough to be drawn. Imports nothing heavy."""

from __future__ import annotations

from signet_sync.graph.nodes import GraphEdge, GraphNode
from signet_sync.graph.picture import Picture
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.named_rows import NODES

_NODE = ", ".join(f"n.{name}" for name in GraphNode._fields)
# Sessions come first: a chunk counts as one only if its session has neither summary nor compaction.
_LEAF = (
    "n.source_type = 'chunk' and not exists(select 1 from thread_sessions t where t.agent_id = n.agent_id"
    " and t.session_token = n.session_token and t.session_id = n.session_id and t.node_id = n.id)"
)


def read_picture(database: Database, agent_id: str, thread_id: str | None, limit: int) -> Picture:
    """Reads the newest nodes of an agent, or of one thread: condensations and sessions, then chunks up to the limit.

    Noise, which belongs to no thread, is left out. Threads and nodes are ordered newest first, edges like the nodes.
    """
    where = "n.agent_id = ? and n.thread_id is not null" + (" and n.thread_id = ?" if thread_id is not None else "")
    bindings = [agent_id] if thread_id is None else [agent_id, thread_id]
    nodes = [
        GraphNode(*row)
        for row in database.execute(
            f"select {_NODE} from {NODES} n where {where} order by {_LEAF}, n.latest_us desc, n.depth desc,"
            " n.source_ref, n.start, n.id limit ?",
            [*bindings, limit],
        )
    ]
    total: int = database.value(f"select count(*) from session_summaries n where {where}", bindings)
    threads = dict.fromkeys(node.thread_id for node in nodes if node.thread_id is not None)
    return Picture(
        tuple((thread, _label(database, agent_id, thread)) for thread in threads),
        tuple(nodes),
        tuple(_edges(database, agent_id, {node.id: place for place, node in enumerate(nodes)})),
        total - len(nodes),
    )


def _label(database: Database, agent_id: str, thread_id: str) -> str:
    label: str | None = database.value(
        "select label from memory_thread_heads where agent_id = ? and thread_id = ?", (agent_id, thread_id)
    )
    return label or thread_id


def _edges(database: Database, agent_id: str, shown: dict[str, int]) -> list[GraphEdge]:
    """Returns the edges among the nodes that are shown, in their order."""
    found = [
        GraphEdge(agent_id, parent, child)
        for child in shown
        for (parent,) in database.execute(
            "select parent_id from session_summary_children where agent_id = ? and child_id = ?", (agent_id, child)
        )
        if parent in shown
    ]
    return sorted(found, key=lambda edge: (shown[edge.parent_id], shown[edge.child_id]))
