"""Stores rows of the temporal graph: reads by session and by thread, writes only rows that differ."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from signet_sync.formats.artifact import REPOSITORY_FIELDS
from signet_sync.formats.timestamps import parse_instant
from signet_sync.graph.nodes import ArtifactText, GraphEdge, GraphNode, make_place, top_of
from signet_sync.graph.store.projects import Projects
from signet_sync.graph.threads import ThreadSession, ThreadSummary
from signet_sync.storage.database import batches
from signet_sync.storage.database.batches import Session as Session
from signet_sync.storage.database.batches import rows_of_sessions, rows_with_ids, rows_with_values
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import placeholders
from signet_sync.storage.database.tables import NODES
from signet_sync.sync.store.sessions import find_doubled
from signet_sync.sync.store.texts import KEPT, unpack_text

# The rows of a session: its nodes, the edges from them, its place in a thread.
SessionRows = tuple[Sequence[GraphNode], Sequence[GraphEdge], ThreadSession | None]

_NODE = ", ".join(GraphNode._fields)
_CONTENT = "source_kind in ('summary', 'transcript', 'compaction')"
_SENTENCE = "coalesce(ledger_sentence, '')"
_SOURCE = (
    "source_path, source_kind, agent_id, session_id, session_key, session_token, project, harness, started_at,"
    f" captured_us, membership_us, noise, {KEPT}, {_SENTENCE}, {', '.join(REPOSITORY_FIELDS)}"
)
_PROJECT = ArtifactText._fields.index("project")
# Sessions whose texts are read together.
_AT_ONCE = 16
_OF_SESSION = "agent_id = ? and session_token = ? and session_id = ?"


_STORED = (
    "agent_id, id, kind, source_type, depth, artifact, thread_id, session, earliest_us, latest_us, end, label, content"
)
_INSERT_NODE = f"insert or replace into session_summaries({_STORED}) values({placeholders(13)})"
_INSERT_EDGE = "insert or ignore into session_summary_children(agent_id, parent_id, child_id) values(?, ?, ?)"
_DELETE_EDGE = "delete from session_summary_children where agent_id = ? and parent_id = ? and child_id = ?"
_DELETE_SESSION = f"delete from thread_sessions where {_OF_SESSION}"
_INSERT_SESSION = f"insert or replace into thread_sessions values({placeholders(len(ThreadSession._fields))})"


def _pack_node(node: GraphNode, artifacts: Mapping[str, int], numbers: Mapping[Session, int]) -> tuple[Any, ...]:
    """Returns a node's row, which has numbers for its artifact and session."""
    artifact = artifacts[node.source_ref] if node.source_ref is not None else None
    session = None
    if node.session_token is not None and node.session_id is not None:
        session = numbers[node.agent_id, node.session_token, node.session_id]
    return (*node[:5], artifact, node.thread_id, session, *node[9:11], *node[12:])


def source_of(row: Sequence[Any]) -> ArtifactText:
    """Makes an artifact's text from its row (`list_stored_artifacts`), with project, branch and worktree at its end."""
    columns = [*row[:8], parse_instant(row[8]) if row[8] else None, *row[9:12], unpack_text(row[12]), *row[13:]]
    return ArtifactText(*columns)


def sources(database: Database, session: Session, projects: Projects | None = None) -> list[ArtifactText]:
    """Returns the content artifacts of a session, oldest first."""
    found = list_stored_artifacts(database, [session], projects or Projects(database))
    return [source_of(row) for _, rows in found for row in rows]


def list_stored_artifacts(
    database: Database, wanted: Iterable[Session], projects: Projects
) -> Iterator[tuple[Session, list[tuple[Any, ...]]]]:
    """Yields sessions with the stored rows of their content artifacts, oldest first; none if it is shown elsewhere.

    Their texts are compressed, and workers decompress them. A few sessions are read by one statement: it costs several
    times as much where other work comes between.
    """
    coming = iter(wanted)
    while some := list(islice(coming, _AT_ONCE)):
        found: dict[Session, list[tuple[Any, ...]]] = {session: [] for session in some}
        for *row, root, origin, inside, branch in rows_of_sessions(
            database, _SOURCE, f"(select * from memory_artifacts where {_CONTENT})", some
        ):
            place = make_place(row[_PROJECT], root, origin)
            tree = top_of(place, inside) if place.root else None  # not by what other sessions name
            found[row[2], row[5], row[3]].append((*row, projects.find(row[2], place), branch, tree))
        hidden = find_doubled(database, some)
        for session, rows in found.items():
            yield session, [] if session in hidden else sorted(rows, key=itemgetter(9, 0))


def transcripts(database: Database, wanted: Iterable[Session], since_us: int) -> Iterator[tuple[Session, list[str]]]:
    """Yields sessions with the texts of their transcripts, oldest first; none of a session that ended before."""
    coming = iter(wanted)
    while some := list(islice(coming, _AT_ONCE)):
        found: dict[Session, list[tuple[Any, ...]]] = {session: [] for session in some}
        for *session, told, at_us, path, kept, until_us in rows_of_sessions(
            database,
            f"agent_id, session_token, session_id, source_kind, captured_us, source_path, {KEPT}, membership_us",
            f"(select * from memory_artifacts where {_CONTENT})",
            some,
        ):
            found[tuple(session)].append((at_us, path, told, kept, until_us))
        for key, rows in found.items():
            said = sorted(row for row in rows if row[2] == "transcript")
            recent = any(row[4] >= since_us for row in rows)
            yield key, [unpack_text(row[3]) for row in said] if recent else []


def sessions(database: Database) -> Iterator[Session]:
    """Yields every session that has an artifact."""
    # The index covers the query in this order: no text is read, nothing is sorted in memory.
    return database.execute(
        "select distinct agent_id, session_token, session_id from memory_artifacts indexed by memory_artifacts_session"
    )


# ── sessions ──


def store_sessions(database: Database, wanted_rows: Mapping[Session, SessionRows]) -> list[ThreadSession]:
    """Makes the nodes of sessions, their edges and their places in threads equal to the given ones.

    Returns the former and the present places of the sessions that changed.
    """
    held = {row[:3]: ThreadSession(*row) for row in rows_of_sessions(database, "*", "thread_sessions", wanted_rows)}
    batches.number(database, [session for session, (nodes, _, _) in wanted_rows.items() if nodes])
    numbers = batches.numbers(database, wanted_rows)
    before = {
        (row[0], row[1]): row
        for row in rows_with_values(database, _STORED, "session_summaries", "session", numbers.values())
    }
    paths = {node.source_ref for nodes, _, _ in wanted_rows.values() for node in nodes if node.source_ref is not None}
    artifacts = batches.artifacts(database, paths)
    after = {
        (node.agent_id, node.id): _pack_node(node, artifacts, numbers)
        for nodes, _, _ in wanted_rows.values()
        for node in nodes
    }
    gone = [key for key in before if key not in after]
    fresh = [row for key, row in after.items() if before.get(key) != row]
    stood = _edges_from(database, before.keys() & after.keys())
    wanted = {(edge.agent_id, edge.parent_id, edge.child_id) for _, edges, _ in wanted_rows.values() for edge in edges}
    for agent_id, node_id in gone:
        drop_nodes(database, agent_id, [node_id])
    database.executemany(_INSERT_NODE, fresh)
    database.executemany(_DELETE_EDGE, sorted(stood - wanted))
    database.executemany(_INSERT_EDGE, sorted(wanted - stood))
    rows = [*(before[key] for key in gone), *fresh, *(after[edge[0], edge[1]] for edge in stood ^ wanted)]
    changed = {row[7] for row in rows}
    moved = {session for session, number in numbers.items() if number in changed}
    places = {session: place for session, (_, _, place) in wanted_rows.items() if held.get(session) != place}
    database.executemany(_DELETE_SESSION, [session for session, place in places.items() if place is None])
    database.executemany(_INSERT_SESSION, [place for place in places.values() if place is not None])
    found = (
        (held.get(session), wanted_rows[session][2]) for session in wanted_rows if session in moved or session in places
    )
    return [place for both in found for place in both if place is not None]


def _edges_from(database: Database, nodes: Iterable[tuple[str, str]]) -> set[tuple[str, str, str]]:
    return {
        (agent_id, *edge)
        for agent_id, some in groupby(sorted(nodes), key=itemgetter(0))
        for edge in rows_with_ids(
            database, "parent_id, child_id", "session_summary_children", agent_id, "parent_id", [one for _, one in some]
        )
    }


def drop_nodes(database: Database, agent_id: str, ids: Sequence[str]) -> None:
    """Deletes nodes and all edges from and to them."""
    for node_id in ids:
        row = (agent_id, node_id)
        database.execute("delete from session_summaries where agent_id = ? and id = ?", row)
        database.execute("delete from session_summary_children where agent_id = ? and parent_id = ?", row)
        database.execute("delete from session_summary_children where agent_id = ? and child_id = ?", row)


def place_of(database: Database, session: Session) -> ThreadSession | None:
    """Returns a session's place in its thread."""
    for row in database.execute(f"select * from thread_sessions where {_OF_SESSION}", session):
        return ThreadSession(*row)
    return None


def threads(database: Database, sessions: Collection[Session]) -> dict[Session, str]:
    """Returns the threads of those sessions that belong to one."""
    columns = "agent_id, session_token, session_id, thread_id"
    return {row[:3]: row[3] for row in rows_of_sessions(database, columns, "thread_sessions", sessions)}


def sentences(database: Database, sessions: Collection[Session]) -> dict[Session, str]:
    """Returns the sentences of those sessions that belong to a thread."""
    columns = "agent_id, session_token, session_id, sentence"
    return {row[:3]: row[3] for row in rows_of_sessions(database, columns, "thread_sessions", sessions)}


# ── threads ──


def summary_of(database: Database, agent_id: str, thread_id: str) -> ThreadSummary | None:
    """Returns the stored summary of a thread."""
    found = database.execute(
        "select * from memory_thread_heads where agent_id = ? and thread_id = ?", (agent_id, thread_id)
    )
    return next((ThreadSummary(*row) for row in found), None)


def store_summary(database: Database, agent_id: str, thread_id: str, head: ThreadSummary | None) -> None:
    """Writes a thread's summary if it differs; deletes that of a thread that has no session any more."""
    if head is None:
        database.execute("delete from memory_thread_heads where agent_id = ? and thread_id = ?", (agent_id, thread_id))
    elif summary_of(database, agent_id, thread_id) != head:
        database.execute(f"insert or replace into memory_thread_heads values({placeholders(len(head))})", head)


def newest_sessions(database: Database, agent_id: str, thread_id: str, limit: int) -> list[ThreadSession]:
    """Returns the newest sessions of a thread, newest first, ties by token and id."""
    return [
        ThreadSession(*row)
        for row in database.execute(
            "select * from thread_sessions where agent_id = ? and thread_id = ?"
            " order by latest_us desc, session_token, session_id limit ?",
            (agent_id, thread_id, limit),
        )
    ]


def sessions_of(database: Database, agent_id: str, thread_id: str, week: str) -> list[ThreadSession]:
    """Returns the sessions of a week of a thread."""
    of_week = "select * from thread_sessions where agent_id = ? and thread_id = ? and week = ?"
    return [ThreadSession(*row) for row in database.execute(of_week, (agent_id, thread_id, week))]


def summaries_and_compactions(database: Database, agent_id: str, thread_id: str, week: str) -> set[str]:
    """Returns the ids of the summaries and compactions of the sessions of a week of a thread."""
    rows = database.execute(
        "select n.id from thread_sessions t cross join sessions s on s.agent_id = t.agent_id"
        " and s.session_token = t.session_token and s.session_id = t.session_id"
        " cross join session_summaries n on n.session = s.session"
        " where t.agent_id = ? and t.thread_id = ? and t.week = ? and n.source_type in ('summary', 'compaction')",
        (agent_id, thread_id, week),
    )
    return {one for (one,) in rows}


def extent(database: Database, agent_id: str, thread_id: str) -> tuple[int, int]:
    """Returns how many sessions a thread has, and when the earliest began."""
    for count, earliest in database.execute(
        "select count(*), min(earliest_us) from thread_sessions where agent_id = ? and thread_id = ?",
        (agent_id, thread_id),
    ):
        return count, earliest or 0
    return 0, 0


def arcs(database: Database, agent_id: str, thread_id: str, first_us: int, last_us: int) -> list[GraphNode]:
    """Returns a thread's arcs whose newest session is between two instants (inclusive), newest first, ties by id."""
    return [
        GraphNode(*row)
        for row in database.execute(
            f"select {_NODE} from {NODES} where agent_id = ? and thread_id = ? and depth = 1"
            " and latest_us between ? and ? order by latest_us desc, id",
            (agent_id, thread_id, first_us, last_us),
        )
    ]


def newest_arc(database: Database, agent_id: str, thread_id: str) -> str | None:
    """Returns the newest arc of a thread."""
    found: str | None = database.value(
        "select id from session_summaries where agent_id = ? and thread_id = ? and depth = 1"
        " order by latest_us desc, id limit 1",
        (agent_id, thread_id),
    )
    return found


def store_condensation(
    database: Database, agent_id: str, node_id: str, node: GraphNode | None, children: Collection[str]
) -> None:
    """Writes an arc or epoch and its children if they differ; without a node, deletes it."""
    if node is None:
        drop_nodes(database, agent_id, [node_id])
        return
    stored = _pack_node(node, {}, {})
    present = database.execute(f"select {_STORED} from session_summaries where agent_id = ? and id = ?", stored[:2])
    if list(present) != [stored]:
        database.execute(_INSERT_NODE, stored)
    below = "select child_id from session_summary_children where agent_id = ? and parent_id = ?"
    held = {one for (one,) in database.execute(below, stored[:2])}
    database.executemany(_DELETE_EDGE, [(agent_id, node_id, one) for one in sorted(held.difference(children))])
    database.executemany(_INSERT_EDGE, [(agent_id, node_id, one) for one in sorted(set(children) - held)])


def clear_threads(database: Database) -> None:
    """Deletes condensations and thread summaries."""
    for agent_id, node_id in list(database.execute("select agent_id, id from session_summaries where depth > 0")):
        drop_nodes(database, agent_id, [node_id])
    database.execute("delete from memory_thread_heads")


def weeks(database: Database) -> list[tuple[str, str, str]]:
    """Returns every week in which a thread has a session: agent, thread and week."""
    return list(database.execute("select distinct agent_id, thread_id, week from thread_sessions"))
