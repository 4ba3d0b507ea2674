"""Rows of the temporal graph: read by session and by thread, written only where they differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from signet_sync.contracts.timestamps import parse_instant
from signet_sync.facts.records import Item
from signet_sync.index.bodies import KEPT, opened
from signet_sync.index.database import Database
from signet_sync.index.removal import drop_ids, within
from signet_sync.storage.database.tables import TABLES, distilled, of_ids
from signet_sync.temporal.nodes import Edge, Node, Source
from signet_sync.temporal.threads import (
    ThreadHead,
    ThreadSession,
    head_columns,
    head_from,
    session_columns,
    session_from,
)

Session = tuple[str, str, str]  # agent, token, session id

GRAPH = ("session_summaries", "session_summary_children", "thread_sessions", "memory_thread_heads")
_NODE = ", ".join(Node._fields)
_CONTENT = "source_kind in ('summary', 'transcript', 'compaction')"
_SOURCE = (
    "source_path, source_kind, agent_id, session_id, session_key, session_token, project, harness, started_at,"
    f" captured_us, membership_us, noise, {KEPT}, coalesce(ledger_sentence, '')"
)
_OF_SESSION = "agent_id = ? and session_token = ? and session_id = ?"


def _marks(count: int) -> str:
    return ", ".join("?" * count)


_INSERT_NODE = f"insert or replace into session_summaries({_NODE}) values({_marks(len(Node._fields))})"
_INSERT_EDGE = "insert or ignore into session_summary_children(agent_id, parent_id, child_id) values(?, ?, ?)"
_INSERT_SESSION = f"insert or replace into thread_sessions values({_marks(13)})"
_INSERT_HEAD = f"insert or replace into memory_thread_heads values({_marks(17)})"


def source_of(row: Sequence[Any]) -> Source:
    """An artifact of what is kept of it."""
    columns = [*row[:8], parse_instant(row[8]) if row[8] else None, *row[9:12], opened(row[12]), *row[13:]]
    return Source(*columns)


def sources(database: Database, session: Session) -> list[Source]:
    """The content artifacts of a session, oldest first."""
    return [source_of(row) for row in kept(database, session)]


def kept(database: Database, session: Session) -> list[tuple[Any, ...]]:
    """What is kept of them: workers read the texts in it."""
    return list(
        database.execute(
            f"select {_SOURCE} from memory_artifacts where {_OF_SESSION} and {_CONTENT}"
            " order by captured_us, source_path",
            session,
        )
    )


def sessions(database: Database) -> Iterable[Session]:
    """Every session that has an artifact, the newest of each agent first."""
    # Named, so that no text is read on the way to the instants behind it.
    return dict.fromkeys(
        database.execute(
            "select agent_id, session_token, session_id from memory_artifacts indexed by memory_artifacts_time"
            " order by agent_id, membership_us desc"
        )
    )


def extracted(database: Database, agent_id: str, paths: Iterable[str]) -> dict[str, list[Item]]:
    """What a model distilled from some artifacts, by path, as long as their bodies are those that it saw."""
    found: dict[str, list[Item]] = {}
    for path in paths:
        for (items,) in database.execute(
            "select e.items from extractions e join memory_artifacts a"
            " on a.source_path = e.source_path and a.source_sha256 = e.source_sha256 and a.agent_id = e.agent_id"
            " where e.agent_id = ? and e.source_path = ?",
            (agent_id, path),
        ):
            found[path] = [Item(*item) for item in json.loads(items)]
    return found


def any_extracted(database: Database) -> bool:
    """Whether a model ever distilled anything."""
    return bool(database.value("select exists(select 1 from extractions)"))


# ── sessions ──


def store_session(
    database: Database,
    session: Session,
    nodes: Sequence[Node],
    edges: Sequence[Edge],
    place: ThreadSession | None,
    held: ThreadSession | None,
) -> bool:
    """Makes a session's nodes, their edges and its place in a thread as given; False where all of it stood so.

    `held` is the place that stands.
    """
    agent_id = session[0]
    before = {row[1]: row for row in _nodes_of(database, session)}
    after = {node.id: tuple(node) for node in nodes}
    gone = [node_id for node_id in before if node_id not in after]
    fresh = [row for node_id, row in after.items() if before.get(node_id) != row]
    drop_nodes(database, agent_id, gone)
    database.executemany(_INSERT_NODE, fresh)
    children: dict[str, set[str]] = {node_id: set() for node_id in after}
    for edge in edges:
        children[edge.parent_id].add(edge.child_id)
    moved = bool(gone or fresh)
    for parent, wanted in children.items():
        moved |= store_children(database, agent_id, parent, wanted)
    if held != place:
        moved = True
        if place is None:
            database.execute(f"delete from thread_sessions where {_OF_SESSION}", session)
        else:
            database.execute(_INSERT_SESSION, session_columns(place))
    return moved


def _nodes_of(database: Database, session: Session) -> list[tuple[Any, ...]]:
    return list(database.execute(f"select {_NODE} from session_summaries where {_OF_SESSION}", session))


def drop_nodes(database: Database, agent_id: str, ids: Sequence[str]) -> None:
    """Drops nodes and all edges from and to them."""
    for node_id in ids:
        row = (agent_id, node_id)
        database.execute("delete from session_summaries where agent_id = ? and id = ?", row)
        database.execute("delete from session_summary_children where agent_id = ? and parent_id = ?", row)
        database.execute("delete from session_summary_children where agent_id = ? and child_id = ?", row)


def store_children(database: Database, agent_id: str, parent_id: str, wanted: set[str]) -> bool:
    """Makes a node's children as given; False where they were so."""
    present = {
        row[0]
        for row in database.execute(
            "select child_id from session_summary_children where agent_id = ? and parent_id = ?", (agent_id, parent_id)
        )
    }
    if present == wanted:
        return False
    database.executemany(
        "delete from session_summary_children where agent_id = ? and parent_id = ? and child_id = ?",
        [(agent_id, parent_id, child) for child in sorted(present - wanted)],
    )
    database.executemany(_INSERT_EDGE, [(agent_id, parent_id, child) for child in sorted(wanted - present)])
    return True


def place_of(database: Database, session: Session) -> ThreadSession | None:
    """A session's place in its thread."""
    for row in database.execute(f"select * from thread_sessions where {_OF_SESSION}", session):
        return session_from(row)
    return None


def sentences(database: Database, sessions: Iterable[Session]) -> dict[Session, str]:
    """The sentences of those sessions that are on a thread."""
    sql = f"select sentence from thread_sessions where {_OF_SESSION}"
    return {one: sentence for one in sessions for (sentence,) in database.execute(sql, one)}


# ── threads ──


def head_of(database: Database, agent_id: str, thread_id: str) -> ThreadHead | None:
    """The stored head of a thread."""
    for row in database.execute(
        "select * from memory_thread_heads where agent_id = ? and thread_id = ?", (agent_id, thread_id)
    ):
        return head_from(row)
    return None


def store_head(database: Database, head: ThreadHead) -> None:
    """Writes a thread's head where it differs."""
    if head_of(database, head.agent_id, head.thread_id) != head:
        database.execute(_INSERT_HEAD, head_columns(head))


def drop_head(database: Database, agent_id: str, thread_id: str) -> None:
    """Drops the head of a thread that has no session any more."""
    database.execute("delete from memory_thread_heads where agent_id = ? and thread_id = ?", (agent_id, thread_id))


def newest_sessions(database: Database, agent_id: str, thread_id: str, limit: int) -> list[ThreadSession]:
    """The newest sessions of a thread, newest first, ties by token and id."""
    return [
        session_from(row)
        for row in database.execute(
            "select * from thread_sessions where agent_id = ? and thread_id = ?"
            " order by latest_us desc, session_token, session_id limit ?",
            (agent_id, thread_id, limit),
        )
    ]


def sessions_of(database: Database, agent_id: str, thread_id: str, *week: str) -> list[ThreadSession]:
    """The sessions of a thread, or of one week of it."""
    return [
        session_from(row)
        for row in database.execute(
            f"select * from thread_sessions t where {_of_thread(week)}", (agent_id, thread_id, *week)
        )
    ]


def summed_up(database: Database, agent_id: str, thread_id: str, *week: str) -> list[tuple[str, str]]:
    """Week and id of the summaries and compactions of a thread's sessions, or of those of one week."""
    return list(
        database.execute(
            "select t.week, n.id from thread_sessions t cross join session_summaries n on n.agent_id = t.agent_id"
            " and n.session_token = t.session_token and n.session_id = t.session_id"
            f" where {_of_thread(week)} and n.source_type in ('summary', 'compaction')",
            (agent_id, thread_id, *week),
        )
    )


def _of_thread(week: Sequence[str]) -> str:
    return f"t.agent_id = ? and t.thread_id = ?{' and t.week = ?' if week else ''}"


def extent(database: Database, agent_id: str, thread_id: str) -> tuple[int, int]:
    """How many sessions a thread has, and the first instant of the earliest."""
    for count, earliest in database.execute(
        "select count(*), min(earliest_us) from thread_sessions where agent_id = ? and thread_id = ?",
        (agent_id, thread_id),
    ):
        return count, earliest or 0
    return 0, 0


def arcs(database: Database, agent_id: str, thread_id: str, first_us: int, last_us: int) -> list[Node]:
    """The arcs of a thread whose newest session lies between two instants, both inside; newest first, ties by id."""
    return [
        Node(*row)
        for row in database.execute(
            f"select {_NODE} from session_summaries where agent_id = ? and thread_id = ? and depth = 1"
            " and latest_us between ? and ? order by latest_us desc, id",
            (agent_id, thread_id, first_us, last_us),
        )
    ]


def newest_arc(database: Database, agent_id: str, thread_id: str) -> str | None:
    """The newest arc of a thread."""
    found: str | None = database.value(
        "select id from session_summaries where agent_id = ? and thread_id = ? and depth = 1"
        " order by latest_us desc, id limit 1",
        (agent_id, thread_id),
    )
    return found


def store_condensation(database: Database, node: Node, edges: Sequence[Edge]) -> None:
    """Writes an arc or epoch and its children where they differ."""
    present = list(
        database.execute(
            f"select {_NODE} from session_summaries where agent_id = ? and id = ?", (node.agent_id, node.id)
        )
    )
    if present != [tuple(node)]:
        database.execute(_INSERT_NODE, tuple(node))
    store_children(database, node.agent_id, node.id, {edge.child_id for edge in edges})


def clear_threads(database: Database) -> None:
    """Drops what sums up threads: condensations and heads."""
    for agent_id, node_id in condensations(database):
        drop_nodes(database, agent_id, [node_id])
    database.execute("delete from memory_thread_heads")


def weeks(database: Database) -> list[tuple[str, str, str]]:
    """Every week in which a thread has a session: agent, thread and week."""
    return list(database.execute("select distinct agent_id, thread_id, week from thread_sessions"))


def heads(database: Database) -> list[tuple[str, str]]:
    """Every thread that has a head: agent and id."""
    return list(database.execute("select agent_id, thread_id from memory_thread_heads"))


def condensations(database: Database) -> list[tuple[str, str]]:
    """Every arc and epoch: agent and id."""
    return list(database.execute("select agent_id, id from session_summaries where depth > 0"))


def condensation(database: Database, agent_id: str, node_id: str) -> str | None:
    """What an arc or epoch tells."""
    found: str | None = database.value(
        "select content from session_summaries where agent_id = ? and id = ? and depth > 0", (agent_id, node_id)
    )
    return found


# ── removal ──


def forget_marks(database: Database, agent_id: str, token: str, session_ids: Sequence[str]) -> set[tuple[str, str]]:
    """Forgets accesses and pins of what a removed session alone stands behind; no ids: every session of the token.

    Before its rows go, because only they tell the ids. Gives the condensations (agent, id) above it.
    """
    mine, scope = within((agent_id, token, tuple(session_ids)))
    ids = {row[0] for row in database.execute(f"select id from session_summaries where {mine}", scope)}
    if not ids:
        return set()
    above = _condensations_above(database, agent_id, ids)
    for name, column in ((table.name, table.handle) for table in distilled()):
        alone = (
            f"select distinct {column} from {name} t where {mine} and not exists(select 1 from {name} o"
            f" where o.agent_id = t.agent_id and o.{column} = t.{column} and not ({mine}))"
        )
        ids |= {row[0] for row in database.execute(alone, [*scope, *scope])}
    drop_ids(database, [(agent_id, node_id) for node_id in sorted(ids)], *of_ids())
    return above


def forget_marks_of_gone(database: Database, above: Iterable[tuple[str, str]]) -> None:
    """Forgets accesses and pins of those condensations above removed sessions that the rest is too little for."""
    there = "select exists(select 1 from session_summaries where agent_id = ? and id = ?)"
    drop_ids(database, [node for node in sorted(above) if not database.value(there, node)], *of_ids())


def forget_marks_of_nothing(database: Database, agent_id: str) -> None:
    """Forgets accesses and pins of an agent's ids that nothing stands behind."""
    made = " union ".join(f"select {TABLES[name].handle} from {name} where agent_id = ?1" for name in of_ids())
    behind = [
        table for table in TABLES.values() if table.handle and (table.kind == "derived" or table.name == "memories")
    ]
    there = " union all ".join(f"select 1 from {one.name} where agent_id = ?1 and {one.handle} = ?2" for one in behind)
    marked = [(agent_id, one) for (one,) in database.execute(made, (agent_id,))]
    drop_ids(database, [one for one in marked if not database.value(f"select exists({there})", one)], *of_ids())


def _condensations_above(database: Database, agent_id: str, ids: Iterable[str]) -> set[tuple[str, str]]:
    """The arcs over some nodes, and the epochs over these."""
    found: set[str] = set()
    below = set(ids)
    while below:
        below = {
            parent
            for node_id in below
            for (parent,) in database.execute(
                "select c.parent_id from session_summary_children c join session_summaries p"
                " on p.agent_id = c.agent_id and p.id = c.parent_id"
                " where c.agent_id = ? and c.child_id = ? and p.source_type = 'condensation'",
                (agent_id, node_id),
            )
        } - found
        found |= below
    return {(agent_id, node_id) for node_id in found}
