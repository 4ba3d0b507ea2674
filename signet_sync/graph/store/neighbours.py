"""Reads a node, thread, statement or memory: what is above, below and beside it, its texts, a label for each id.

Bounded; imports nothing heavy.
"""

from collections.abc import Iterable
from typing import NamedTuple

from signet_sync.formats.handle import make_place_id, place_of, place_step, row_id_of
from signet_sync.formats.timestamps import day_of
from signet_sync.graph.nodes import NO_WORDS, GraphNode
from signet_sync.graph.store import nodes
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import NODES, STATEMENTS, path_of
from signet_sync.sync.store.sessions import SessionRef
from signet_sync.sync.store.texts import text_at, text_of
from signet_sync.text.chunking import first_words, speaker_at, turns
from signet_sync.text.sentences import flatten

SIBLINGS = 10
LINKED = 50
_NEAR = 1_000  # characters of a turn before a place
_PAGE = 4_000  # characters of a transcript from one place that is offered to the next

_NODE = ", ".join(GraphNode._fields)


# ── nodes and threads ──


def node(database: Database, agent_id: str, node_id: str) -> GraphNode | None:
    """Returns a node of the graph; for a place in a transcript what that holds from there on."""
    row = f"select {_NODE} from {NODES} where agent_id = ? and id = ?"
    for found in database.execute(row, (agent_id, row_id_of(node_id))):
        whole = GraphNode(*found)
        return whole if whole.id == node_id else _find_passage(database, whole, node_id)
    return None


def _find_passage(database: Database, whole: GraphNode, node_id: str) -> GraphNode:
    """Returns what a transcript holds from the turn of a place on, of a long turn from the line there.

    The label is who speaks.
    """
    text = text_at(database, whole.source_ref or "")
    place, begun = place_of(node_id, len(text)), list(turns(text))
    here = [one for one in begun if place - place_step(len(text)) < one.words <= place]
    turn = here[0] if here else next((one for one in reversed(begun) if one.start <= place), None)
    if turn is None:
        return whole._replace(id=node_id, end=len(text))
    near = place - turn.start < _NEAR
    start = turn.start if near else text.rfind("\n", place - _NEAR, place) + 1 or place
    first, last = (whole.earliest_us, whole.latest_us) if turn.at is None else (turn.at, turn.at)
    label = turn.label or whole.label
    return whole._replace(id=node_id, start=start, end=len(text), label=label, earliest_us=first, latest_us=last)


def parents(database: Database, agent_id: str, node_id: str) -> list[str]:
    """Returns the nodes that a node was condensed into, the nearest level first."""
    return database.column(
        "select n.id from session_summary_children c"
        " join session_summaries n on n.agent_id = c.agent_id and n.id = c.parent_id"
        " where c.agent_id = ? and c.child_id = ? order by n.depth, n.latest_us, n.id",
        (agent_id, row_id_of(node_id)),
    )


def children(database: Database, agent_id: str, node_id: str) -> list[str]:
    """Returns the nodes that a node was made of, oldest first; of a transcript its first chunk, beside the others."""
    return database.column(
        "select n.id from session_summary_children c"
        f" join {NODES} n on n.agent_id = c.agent_id and n.id = c.child_id"
        " where c.agent_id = ? and c.parent_id = ? order by n.earliest_us, n.source_ref, n.id",
        (agent_id, node_id),
    )


def siblings(database: Database, of: GraphNode) -> list[str]:
    """Returns the nodes beside one of a session, nearest first: the other summaries and compactions of that.

    For a transcript: where it goes on, and what was before.
    """
    if of.source_type == "chunk":
        places = [of.start + _PAGE] if of.start + _PAGE < of.end else []
        places += [max(of.start - _PAGE, 0)] if of.start else []
        return [make_place_id(of.id, place, of.end) for place in places]
    return database.column(
        f"select id from {NODES} where agent_id = ? and session_token = ? and session_id = ?"
        " and source_type <> 'chunk' and id <> ? order by abs(latest_us - ?), latest_us desc, id limit ?",
        (of.agent_id, of.session_token, of.session_id, of.id, of.latest_us, SIBLINGS),
    )


def newest_of_thread(database: Database, agent_id: str, thread_id: str) -> tuple[list[str], list[str]]:
    """Returns a thread's newest arc, if any, the nodes of its newest sessions, and what these left."""
    arc = (
        "select id from session_summaries where agent_id = ? and thread_id = ? and depth = 1"
        " order by latest_us desc, id limit 1"
    )
    newest = nodes.newest_sessions(database, agent_id, thread_id, SIBLINGS)
    refs = (SessionRef(agent_id, one.session_token, one.session_id, None) for one in newest)
    linked = dict.fromkeys(thing for ref in refs for thing in memories_and_statements(database, ref))
    return database.column(arc, (agent_id, thread_id)) + [one.node_id for one in newest], [*linked][:LINKED]


# ── memories and statements ──


def memories_and_statements(database: Database, ref: SessionRef) -> list[str]:
    """Returns the memories that come from a session, then what it states, first what still holds."""
    return database.column(
        "select memory_id from memory_sources where agent_id = ? and session_token = ? and session_id = ?"
        " order by at desc, memory_id limit ?",
        (*ref[:3], LINKED),
    ) + database.column(
        "select s.id from sessions n cross join statements s on s.session = n.session"
        " where n.agent_id = ? and n.session_token = ? and n.session_id = ?"
        f" group by s.id order by min(s.status <> 'open'), min({path_of('s.artifact')}), min(s.line), s.id limit ?",
        (*ref[:3], LINKED),
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


def occurrences(database: Database, agent_id: str, statement_id: str) -> list[Occurrence]:
    """Returns the places where artifacts state something, newest first."""
    rows = database.execute(
        "select s.source_path, s.line, s.agent_id, s.session_token, s.session_id, n.id, n.source_type, n.end"
        f" from (select * from {STATEMENTS} where agent_id = ? and id = ?"
        " order by at_us desc, source_path desc limit ?) s left join memory_artifacts a using (source_path)"
        " left join session_summaries n on n.artifact = a.id and n.agent_id = s.agent_id",
        (agent_id, statement_id, SIBLINGS),
    )
    found = []
    for path, line, agent, token, session_id, node_id, kind, length in rows:
        if kind == "chunk":
            node_id = make_place_id(node_id, line_start(text_at(database, path), line), length)
        found.append(Occurrence(path, line, SessionRef(agent, token, session_id, None), node_id))
    return found


def line_start(text: str, line: int) -> int:
    """Returns where a line, counted from 1, begins; the text's end if it has fewer lines."""
    place = 0
    for _ in range(line - 1):
        found = text.find("\n", place)
        if found < 0:
            return len(text)
        place = found + 1
    return place


# ── texts ──


LABEL = 80


def excerpt(database: Database, path: str, start: int = 0) -> str:
    """Returns the content of an artifact from a character on.

    If it begins within a turn, a line before it names its speaker.
    """
    text = text_at(database, path)
    piece = text[start:]
    if start:
        words = piece.lstrip("\n")
        begun, at = list(turns(text)), start + len(piece) - len(words)
        label = speaker_at(begun, at)
        piece = f"[{label} goes on]\n\n{words}" if label and all(turn.start != at for turn in begun) else words
    return piece


def node_text(database: Database, node: GraphNode) -> str:
    """Returns a node's text: a condensation's own, else its part of the artifact."""
    return node.content or "" if node.source_ref is None else excerpt(database, node.source_ref, node.start)


def transcript_of(database: Database, ref: SessionRef, near_us: int | None = None) -> str | None:
    """Returns the path of a session's transcript with words: captured nearest to an instant, else the newest."""
    path: str | None = database.value(
        "select source_path from memory_artifacts where agent_id = ?1 and session_token = ?2 and session_id = ?3"
        f" and source_kind = 'transcript' and {text_of()} <> ''"
        " order by abs(captured_us - coalesce(?4, captured_us)), captured_us desc, source_path desc limit 1",
        (*ref[:3], near_us),
    )
    return path


# ── labels ──

_LABELS = {
    "node": "select case depth when 0 then source_type when 1 then 'week' else 'quarter' end, latest_us, label"
    " from session_summaries where agent_id = ? and id = ?",
    "t": "select 'thread', latest_us, label || ': ' || status from memory_thread_heads"
    " where agent_id = ? and thread_id = ?",
    "f": "select kind || case status when 'open' then '' else ' (' || status || ')' end, at_us, text"
    " from statements where agent_id = ? and id = ? and newest = 1",
    "m": "select type, substr(created_at, 1, 10), content from memories where agent_id = ? and id = ?",
    **dict.fromkeys(
        "upr",
        "select iif(status = 'active', kind, status || ' ' || kind), updated_us, title from garden_files"
        " where agent_id = ? and id = ? and file = 'profile' order by path limit 1",
    ),
}


def labels(database: Database, agent_id: str, ids: Iterable[str]) -> dict[str, str]:
    """Returns one line for each id: its kind, its day, its words; an unknown id is left out."""
    found: dict[str, str] = {}
    for thing in ids:
        if row_id_of(thing) != thing and (place := node(database, agent_id, thing)) is not None:
            said = first_words(text_at(database, place.source_ref or "")[place.start :], place.label)
            found[thing] = f"chunk {day_of(place.latest_us)} · {flatten(said or NO_WORDS, LABEL)}"
            continue
        for kind, when, said in database.execute(_LABELS.get(thing[:1], _LABELS["node"]), (agent_id, thing)):
            day = when if isinstance(when, str) else day_of(when)
            found[thing] = f"{kind} {day} · {flatten(said, LABEL)}"
    return found
