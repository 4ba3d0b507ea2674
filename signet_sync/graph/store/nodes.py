"""Stores rows of the temporal graph: reads by session and by thread, writes only rows that differ.

Also deletes accesses of what only removed sessions stood behind, and tells which pins go.
"""

import json
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

from signet_sync.formats.artifact import REPOSITORY_FIELDS, Tombstone
from signet_sync.formats.timestamps import parse_instant
from signet_sync.graph.nodes import ArtifactText, GraphEdge, GraphNode, make_place
from signet_sync.graph.store.quotes import Projects
from signet_sync.graph.threads import ThreadSession, ThreadSummary
from signet_sync.storage.database import batches
from signet_sync.storage.database.batches import (
    Scope,
    Session,
    drop_ids,
    drop_session,
    make_condition,
    rows_of_sessions,
    rows_with_values,
)
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.table import placeholders
from signet_sync.storage.database.tables import NODES, TABLES, list_by_ids, list_distilled
from signet_sync.sync.store.sessions import find_doubled
from signet_sync.sync.store.texts import KEPT, unpack_text

# The rows of a session: its nodes, the edges from them, its place in a thread.
SessionRows = tuple[Sequence[GraphNode], Sequence[GraphEdge], ThreadSession | None]

_NODE = ", ".join(GraphNode._fields)
_SENTENCE = "coalesce(ledger_sentence, '')"
_SOURCE = (
    "source_path, source_kind, agent_id, session_id, session_key, session_token, project, harness, started_at,"
    f" captured_us, membership_us, noise, {KEPT}, {_SENTENCE}, {', '.join(REPOSITORY_FIELDS)}"
)
_PROJECT, _STARTED, _CONTENT = map(ArtifactText._fields.index, ("project", "started_us", "content"))
# Sessions whose texts are read together.
_AT_ONCE = 16
_OF_SESSION = "agent_id = ? and session_token = ? and session_id = ?"

_STORED = (
    "agent_id, id, kind, source_type, depth, artifact, thread_id, session, earliest_us, latest_us, end, label, content"
)
_INSERT_NODE = f"insert or replace into session_summaries({_STORED}) values({placeholders(13)})"
_INSERT_EDGE = "insert or ignore into session_summary_children(agent_id, parent_id, child_id) values(?, ?, ?)"
_DELETE_EDGE = "delete from session_summary_children where agent_id = ? and parent_id = ? and child_id = ?"
_INSERT_SESSION = f"insert into thread_sessions values({placeholders(len(ThreadSession._fields))})"


# ── artifacts ──


def _read_artifacts(
    database: Database, columns: str, wanted: Iterable[Session]
) -> Iterator[tuple[Session, list[tuple[Any, ...]]]]:
    """Yields sessions with columns of their content artifacts, oldest first; none if a session is shown elsewhere.

    A few sessions are read by one statement: it costs several times as much where other work comes between.
    """
    coming = iter(wanted)
    content = "(select * from memory_artifacts where source_kind in ('summary', 'transcript', 'compaction'))"
    while some := list(islice(coming, _AT_ONCE)):
        found: dict[Session, list[tuple[Any, ...]]] = {session: [] for session in some}
        names = "agent_id, session_token, session_id, captured_us, source_path"
        for row in rows_of_sessions(database, f"{names}, {columns}", content, some):
            found[row[:3]].append(row[3:])
        hidden = find_doubled(database, some)
        for key, rows in found.items():
            yield key, [] if key in hidden else [row[2:] for row in sorted(rows, key=itemgetter(0, 1))]


def artifact_texts(database: Database, wanted: Iterable[Session]) -> Iterator[tuple[Session, list[ArtifactText]]]:
    """Yields sessions with their content artifacts, oldest first."""
    projects = Projects(database)
    for session, rows in _read_artifacts(database, _SOURCE, wanted):
        found = []
        for *columns, root, origin, inside, branch in rows:
            place = make_place(columns[_PROJECT], root, origin)
            # Its worktree, not by what other sessions name.
            tree = (place.folder.removesuffix(f"/{inside}") if inside else place.folder) if place.root else None
            columns[_STARTED] = parse_instant(columns[_STARTED]) if columns[_STARTED] else None
            columns[_CONTENT] = unpack_text(columns[_CONTENT])
            found.append(ArtifactText._make([*columns, projects.find(session[0], place), branch, tree]))
        yield session, found


def transcripts(database: Database, wanted: Iterable[Session], since_us: int) -> Iterator[tuple[Session, list[str]]]:
    """Yields sessions with the texts of their transcripts, oldest first; none of a session that ended before."""
    for session, rows in _read_artifacts(database, f"source_kind, membership_us, {KEPT}", wanted):
        recent = any(until_us >= since_us for _, until_us, _ in rows)
        yield session, [unpack_text(kept) for kind, _, kept in rows if recent and kind == "transcript"]


def sessions(database: Database) -> Iterator[Session]:
    """Yields every session that has an artifact."""
    # The index covers the query in this order: no text is read, nothing is sorted in memory.
    return database.execute(
        "select distinct agent_id, session_token, session_id from memory_artifacts indexed by memory_artifacts_session"
    )


# ── sessions ──


def store_sessions(database: Database, wanted: Mapping[Session, SessionRows]) -> list[ThreadSession]:
    """Makes the nodes of sessions, the edges among them and their places in threads equal to the given ones.

    Returns the former and the present places of the sessions that changed: their weeks have the edges from above.
    """
    held = places_of(database, wanted)
    batches.number(database, [session for session, (nodes, _, _) in wanted.items() if nodes])
    numbers = batches.numbers(database, wanted)
    made = [node for nodes, _, _ in wanted.values() for node in nodes]
    artifacts = batches.artifacts(database, {node.source_ref for node in made if node.source_ref is not None})
    before = set(rows_with_values(database, _STORED, "session_summaries", "session", numbers.values()))
    after = {_pack_node(node, artifacts, numbers) for node in made}
    changed = {row[7] for row in before ^ after}  # equal nodes have equal edges
    moved = [one for one, rows in wanted.items() if numbers.get(one) in changed or held.get(one) != rows[2]]
    drop_nodes(database, [row[:2] for row in before if row[7] in changed])
    database.executemany(_INSERT_NODE, [row for row in after if row[7] in changed])
    database.executemany(_INSERT_EDGE, [edge for one in moved for edge in wanted[one][1]])
    database.executemany(f"delete from thread_sessions where {_OF_SESSION}", moved)
    database.executemany(_INSERT_SESSION, [place for one in moved if (place := wanted[one][2]) is not None])
    return [place for one in moved for place in (held.get(one), wanted[one][2]) if place is not None]


def _pack_node(node: GraphNode, artifacts: Mapping[str, int], numbers: Mapping[Session, int]) -> tuple[Any, ...]:
    """Returns a node's row, which has numbers for its artifact and session."""
    artifact = artifacts[node.source_ref] if node.source_ref is not None else None
    session = None
    if node.session_token is not None and node.session_id is not None:
        session = numbers[node.agent_id, node.session_token, node.session_id]
    return (*node[:5], artifact, node.thread_id, session, *node[9:11], *node[12:])


def drop_nodes(database: Database, keys: Iterable[tuple[str, str]]) -> None:
    """Deletes nodes (agent, id) and all edges from and to them."""
    for key in sorted(keys):
        database.execute("delete from session_summaries where agent_id = ? and id = ?", key)
        database.execute("delete from session_summary_children where agent_id = ? and parent_id = ?", key)
        database.execute("delete from session_summary_children where agent_id = ? and child_id = ?", key)


def place_of(database: Database, session: Session) -> ThreadSession | None:
    return places_of(database, [session]).get(session)


def places_of(database: Database, sessions: Collection[Session]) -> dict[Session, ThreadSession]:
    """Returns the places of those sessions that belong to a thread."""
    return {row[:3]: ThreadSession(*row) for row in rows_of_sessions(database, "*", "thread_sessions", sessions)}


# ── threads ──


def summary_of(database: Database, agent_id: str, thread_id: str) -> ThreadSummary | None:
    found = database.execute(
        "select * from memory_thread_heads where agent_id = ? and thread_id = ?", (agent_id, thread_id)
    )
    return next((ThreadSummary(*row) for row in found), None)


def summaries(database: Database, agent_id: str) -> list[ThreadSummary]:
    """Returns the summaries of an agent's threads, the one that was worked on last first."""
    found = database.execute(
        "select * from memory_thread_heads where agent_id = ? order by latest_us desc, thread_id", (agent_id,)
    )
    return [ThreadSummary(*row) for row in found]


def store_summary(database: Database, agent_id: str, thread_id: str, head: ThreadSummary | None) -> None:
    """Writes a thread's summary if it differs; deletes that of a thread that has no session any more."""
    if head is None:
        database.execute("delete from memory_thread_heads where agent_id = ? and thread_id = ?", (agent_id, thread_id))
    elif summary_of(database, agent_id, thread_id) != head:
        database.execute(f"insert or replace into memory_thread_heads values({placeholders(len(head))})", head)


def newest_sessions(
    database: Database, agent_id: str, thread_id: str, limit: int, skip: int = 0
) -> list[ThreadSession]:
    """Returns the newest sessions of a thread but the first few, newest first, ties by token and id."""
    rows = database.execute(
        "select * from thread_sessions where agent_id = ? and thread_id = ?"
        " order by latest_us desc, session_token, session_id limit ? offset ?",
        (agent_id, thread_id, limit, skip),
    )
    return [ThreadSession(*row) for row in rows]


def sessions_of(database: Database, agent_id: str, thread_id: str, week: str) -> list[ThreadSession]:
    of_week = "select * from thread_sessions where agent_id = ? and thread_id = ? and week = ?"
    return [ThreadSession(*row) for row in database.execute(of_week, (agent_id, thread_id, week))]


def extent(database: Database, agent_id: str, thread_id: str) -> tuple[int, int]:
    """Returns how many sessions a thread has, and when the earliest began."""
    where = "from thread_sessions where agent_id = ? and thread_id = ?"
    row = next(database.execute(f"select count(*), ifnull(min(earliest_us), 0) {where}", (agent_id, thread_id)))
    return row[0], row[1]


def arcs(database: Database, agent_id: str, thread_id: str, first_us: int, last_us: int) -> list[GraphNode]:
    """Returns a thread's arcs whose newest session is between two instants (inclusive), newest first, ties by id."""
    rows = database.execute(
        f"select {_NODE} from {NODES} where agent_id = ? and thread_id = ? and depth = 1"
        " and latest_us between ? and ? order by latest_us desc, id",
        (agent_id, thread_id, first_us, last_us),
    )
    return [GraphNode(*row) for row in rows]


def store_condensation(
    database: Database, agent_id: str, node_id: str, node: GraphNode | None, children: Collection[str]
) -> None:
    """Writes an arc or epoch and its children if they differ; without a node, deletes it."""
    if node is None:
        drop_nodes(database, [(agent_id, node_id)])
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
    drop_nodes(database, database.execute("select agent_id, id from session_summaries where depth > 0"))
    database.execute("delete from memory_thread_heads")


def weeks(database: Database) -> list[tuple[str, str, str]]:
    """Returns every week in which a thread has a session: agent, thread and week."""
    return list(database.execute("select distinct agent_id, thread_id, week from thread_sessions"))


# ── what removals orphan ──

_VANISHED = "not exists(select 1 from memory_artifacts a where a.source_path = seals.path)"
# Nodes, and all that they were condensed into.
_ABOVE = """
    with recursive above(id) as (select value from json_each(?2) union select c.parent_id from above
    join session_summary_children c on c.agent_id = ?1 and c.child_id = above.id) select id from above"""


class Orphans(NamedTuple):
    """What removals may have orphaned: ids (agent, id), and agents whose vanished sessions were removed.

    `scopes` are sessions of removals that were not followed by their scrub yet.
    """

    ids: set[tuple[str, str]]
    agents: set[str]
    scopes: Sequence[Scope] = ()


def find_orphans(database: Database, tombstones: Sequence[Tombstone], fresh: Container[tuple[str, str]]) -> Orphans:
    """Returns what removals may orphan, before the rows that tell it are deleted; `fresh` ones wait for their scrub."""
    orphans = Orphans(set(), set(), [one.scope for one in tombstones if one.key in fresh])
    for tombstone in tombstones:
        agent_id, (scope, bindings) = tombstone.agent_id, make_condition(tombstone.scope)
        of_rows = " union ".join(f"select {table.handle} from {table.rows} where {scope}" for table in list_distilled())
        ids = database.column(of_rows, [*bindings] * len(list_distilled()))
        orphans.ids.update((agent_id, one) for (one,) in database.execute(_ABOVE, (agent_id, json.dumps(ids))))
        if database.value(f"select exists(select 1 from seals where {scope} and {_VANISHED})", bindings):
            orphans.agents.add(agent_id)
    return orphans


def forget_orphaned_marks(database: Database, orphans: Orphans) -> list[tuple[str, str]]:
    """Deletes accesses of ids that no row has any more, once the graph is updated; returns these, agent and id.

    The ids of what vanished sessions were are in no row before either. While another vanished session of the agent may
    come back, they may be its own. Also deletes derived rows of removed sessions that are left.
    """
    for scope in orphans.scopes:
        drop_session(database, scope, "derived")
    ids = set(orphans.ids)
    made = " union ".join(f"select {TABLES[name].handle} from {name} where agent_id = ?1" for name in list_by_ids())
    made += " union select id from pins where agent_id = ?1"
    for agent_id in orphans.agents:
        if not database.value(f"select exists(select 1 from seals where agent_id = ? and {_VANISHED})", (agent_id,)):
            ids.update((agent_id, one) for (one,) in database.execute(made, (agent_id,)))
    behind = [one for one in TABLES.values() if one.handle and (one.kind == "derived" or one.name == "memories")]
    there = " union all ".join(f"select 1 from {one.rows} where agent_id = ?1 and {one.handle} = ?2" for one in behind)
    gone = [one for one in sorted(ids) if not database.value(f"select exists({there})", one)]
    drop_ids(database, gone, *list_by_ids())
    return gone
