"""Reads what is above, below and beside a node, thread, statement or memory; bounded. Imports nothing heavy."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from signet_sync.formats.handle import at_place, beginning, place_of
from signet_sync.graph.nodes import GraphNode, chunks_of
from signet_sync.graph.store import nodes
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import NODES, STATEMENTS, path_of
from signet_sync.sync.store.bodies import text_at
from signet_sync.sync.store.sessions import SessionRef

SIBLINGS = 10
LINKED = 50

_NODE = ", ".join(GraphNode._fields)


# ── nodes and threads ──


def node(database: Database, agent_id: str, node_id: str) -> GraphNode | None:
    """Returns a node of the graph; for a place in a transcript the chunk that has it."""
    row = f"select {_NODE} from {NODES} where agent_id = ? and id = ?"
    for found in database.execute(row, (agent_id, beginning(node_id))):
        whole = GraphNode(*found)
        return _chunk(chunks(database, whole), node_id, whole.end) if whole.source_type == "chunk" else whole
    return None


def chunks(database: Database, of: GraphNode) -> list[GraphNode]:
    """Returns the chunks of the transcript that a node is of."""
    text = text_at(database, of.source_ref or "")
    return chunks_of(of._replace(id=beginning(of.id), end=len(text)), text)


def _chunk(every: Sequence[GraphNode], node_id: str, length: int) -> GraphNode:
    place = place_of(node_id, length)
    return next(one for one in reversed(every) if one.start <= place)


def parents(database: Database, agent_id: str, node_id: str) -> list[str]:
    """Returns the nodes that a node was condensed into, the nearest level first."""
    return _ids(
        database,
        "select n.id from session_summary_children c"
        " join session_summaries n on n.agent_id = c.agent_id and n.id = c.parent_id"
        " where c.agent_id = ? and c.child_id = ? order by n.depth, n.latest_us, n.id",
        (agent_id, beginning(node_id)),
    )


def children(database: Database, agent_id: str, node_id: str) -> list[str]:
    """Returns the nodes that a node was made of, oldest first; of a transcript its first chunk, beside the others."""
    return _ids(
        database,
        "select n.id from session_summary_children c"
        f" join {NODES} n on n.agent_id = c.agent_id and n.id = c.child_id"
        " where c.agent_id = ? and c.parent_id = ? order by n.earliest_us, n.source_ref, n.id",
        (agent_id, node_id),
    )


def siblings(database: Database, of: GraphNode, limit: int = SIBLINGS) -> list[str]:
    """Returns the nodes beside a node, nearest first.

    For a chunk: those around it in its transcript, and the session's other transcripts; for a summary or compaction:
    the others of its session, and other sessions of its thread; for an arc or epoch: the others of its thread.
    """
    if of.source_type == "chunk":
        return _around(_beside_chunk(database, of), of.id, limit)
    if of.depth:
        return _ids(
            database,
            "select id from session_summaries where agent_id = ? and thread_id = ? and depth = ? and id <> ?"
            " order by abs(latest_us - ?), latest_us desc, id limit ?",
            (of.agent_id, of.thread_id, of.depth, of.id, of.latest_us, limit),
        )
    same = _ids(
        database,
        f"select id from {NODES} where agent_id = ? and session_token = ? and session_id = ?"
        " and source_type <> 'chunk' and id <> ? order by abs(latest_us - ?), latest_us desc, id limit ?",
        (of.agent_id, of.session_token, of.session_id, of.id, of.latest_us, limit // 2),
    )
    return [*same, *_other_sessions(database, of, limit - len(same))]


def _beside_chunk(database: Database, of: GraphNode) -> list[str]:
    """Returns the chunks of a transcript, between the beginnings of its session's other ones in their order."""
    beginnings = _ids(
        database,
        "select n.id from sessions s join session_summaries n on n.session = s.session"
        " join memory_artifacts a on a.id = n.artifact"
        " where s.agent_id = ? and s.session_token = ? and s.session_id = ? and n.source_type = 'chunk'"
        " order by a.captured_us, a.source_path, n.id",
        (of.agent_id, of.session_token, of.session_id),
    )
    place = beginnings.index(beginning(of.id))
    return [*beginnings[:place], *(one.id for one in chunks(database, of)), *beginnings[place + 1 :]]


def _around(ids: Sequence[str], own: str, limit: int) -> list[str]:
    """Returns the ids nearest to one of them by distance; of two equally near, the one before it first."""
    place = ids.index(own)
    near = sorted((place_ for place_ in range(len(ids)) if place_ != place), key=lambda p: (abs(p - place), p))
    return [ids[p] for p in near[:limit]]


def _other_sessions(database: Database, of: GraphNode, limit: int) -> list[str]:
    """Returns the nodes of a thread's sessions that are nearest in time."""
    if of.thread_id is None:
        return []
    near: list[tuple[int, int, str]] = []
    for side, order in (("<=", "desc"), (">", "asc")):
        near += database.execute(
            f"select abs(latest_us - ?1), -latest_us, node_id from thread_sessions where agent_id = ?2"
            f" and thread_id = ?3 and latest_us {side} ?1 and not (session_token = ?4 and session_id = ?5)"
            f" order by latest_us {order}, node_id limit ?6",
            (of.latest_us, of.agent_id, of.thread_id, of.session_token, of.session_id, limit),
        )
    return [node_id for *_, node_id in sorted(near)[:limit]]


def newest_of_thread(database: Database, agent_id: str, thread_id: str, limit: int = SIBLINGS) -> list[str]:
    """Returns a thread's newest arc, if any, and the nodes of its newest sessions."""
    arc = nodes.newest_arc(database, agent_id, thread_id)
    newest = _ids(
        database,
        "select node_id from thread_sessions where agent_id = ? and thread_id = ?"
        " order by latest_us desc, session_token, session_id limit ?",
        (agent_id, thread_id, limit),
    )
    return [arc, *newest] if arc is not None else newest


def sessions_below(database: Database, agent_id: str, of: str, limit: int = SIBLINGS) -> list[SessionRef]:
    """Returns the newest sessions that a thread, an arc or an epoch covers, newest first."""
    if of.startswith("t"):
        sql = (
            "select agent_id, session_token, session_id, null from thread_sessions where agent_id = ? and thread_id = ?"
            " order by latest_us desc, session_token, session_id limit ?"
        )
    else:
        # `cross` makes SQLite start from the nodes below; the other way round reads all nodes of an agent.
        sql = f"""with recursive below(id) as (
            select ?2 union select c.child_id from below
            join session_summaries n on n.agent_id = ?1 and n.id = below.id and n.depth > 0
            join session_summary_children c on c.agent_id = ?1 and c.parent_id = n.id)
            select n.agent_id, n.session_token, n.session_id, null from below
            cross join {NODES} n on n.agent_id = ?1 and n.id = below.id and n.depth = 0
            group by n.session_token, n.session_id
            order by max(n.latest_us) desc, n.session_token, n.session_id limit ?3"""
    return [SessionRef(*row) for row in database.execute(sql, (agent_id, of, limit))]


# ── memories and statements ──


def memories_and_statements(database: Database, ref: SessionRef, limit: int = LINKED) -> list[str]:
    """Returns the memories that come from a session, then what it states, first what still holds."""
    return _ids(
        database,
        "select memory_id from memory_sources where agent_id = ? and session_token = ? and session_id = ?"
        " order by at desc, memory_id limit ?",
        (*ref[:3], limit),
    ) + _ids(
        database,
        "select s.id from sessions n cross join statements s on s.session = n.session"
        " where n.agent_id = ? and n.session_token = ? and n.session_id = ?"
        f" group by s.id order by min(s.status <> 'open'), min({path_of('s.artifact')}), min(s.line), s.id limit ?",
        (*ref[:3], limit),
    )


def sources_of_memory(database: Database, agent_id: str, memory_id: str) -> list[SessionRef]:
    """Returns the sessions that a memory comes from, newest first; none for what a person entered directly."""
    rows = database.execute(
        "select agent_id, session_token, session_id, null from memory_sources"
        " where agent_id = ? and memory_id = ? and session_token <> '' order by at desc, session_token, session_id",
        (agent_id, memory_id),
    )
    return [SessionRef(*row) for row in rows]


class Occurrence(NamedTuple):
    """Where something is stated: artifact, line of its body (from 1), session, and the node there."""

    path: str
    line: int
    session: SessionRef
    node_id: str | None


def occurrences(database: Database, agent_id: str, statement_id: str, limit: int = SIBLINGS) -> list[Occurrence]:
    """Returns the places where artifacts state something, newest first."""
    rows = database.execute(
        f"select source_path, line, agent_id, session_token, session_id from {STATEMENTS}"
        " where agent_id = ? and id = ? order by at_us desc, source_path desc limit ?",
        (agent_id, statement_id, limit),
    )
    return [_occurrence(database, *row) for row in rows]


def _occurrence(database: Database, path: str, line: int, agent_id: str, token: str, session_id: str) -> Occurrence:
    return Occurrence(
        path, line, SessionRef(agent_id, token, session_id, None), _holding(database, agent_id, path, line)
    )


def _holding(database: Database, agent_id: str, path: str, line: int) -> str | None:
    """Returns the node of an artifact that contains a line of its body."""
    for node_id, kind, length in database.execute(
        "select n.id, n.source_type, n.end from memory_artifacts a join session_summaries n on n.artifact = a.id"
        " where a.source_path = ? and n.agent_id = ?",
        (path, agent_id),
    ):
        if kind == "chunk":
            return at_place(node_id, line_start(text_at(database, path), line), length)
        return str(node_id)
    return None


def line_start(text: str, line: int) -> int:
    """Returns where a line, counted from 1, begins; the text's end if it has fewer lines."""
    place = 0
    for _ in range(line - 1):
        found = text.find("\n", place)
        if found < 0:
            return len(text)
        place = found + 1
    return place


def beside(database: Database, stated: Occurrence, statement_id: str, limit: int = SIBLINGS) -> list[str]:
    """Returns what else the artifact states, nearest lines first."""
    return _ids(
        database,
        f"select id from {STATEMENTS} where agent_id = ? and session_token = ? and session_id = ?"
        " and source_path = ? and id <> ? order by abs(line - ?), line, id limit ?",
        (*stated.session[:3], stated.path, statement_id, stated.line, limit),
    )


def _ids(database: Database, sql: str, bindings: Sequence[Any]) -> list[str]:
    return [row[0] for row in database.execute(sql, bindings)]
