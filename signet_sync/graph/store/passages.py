"""Reads texts of the graph: of a node, of the transcript behind it, a label for each id. Imports nothing heavy."""

from collections.abc import Iterable
from typing import NamedTuple

from signet_sync.formats.handle import beginning
from signet_sync.formats.timestamps import day_of
from signet_sync.graph.nodes import GraphNode
from signet_sync.graph.store import neighbours
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.bodies import text_at, text_of
from signet_sync.sync.store.sessions import SessionRef
from signet_sync.text.sentences import flatten

LABEL = 80


class TextExcerpt(NamedTuple):
    """A part of an artifact's content; `whole`: it has all that was requested."""

    path: str
    text: str
    whole: bool


def excerpt(database: Database, path: str, start: int, end: int | None, limit: int) -> TextExcerpt:
    """Returns the characters from `start` to `end` (None: the end of the content), at most `limit`.

    If they begin within a turn, a line before them names its speaker.
    """
    text = text_at(database, path)
    stop = len(text) if end is None else min(end, len(text))
    piece = text[start : min(start + limit, stop)]
    whole = start + len(piece) >= stop
    if start:
        words = piece.lstrip("\n")
        piece = _goes_on(text, start + len(piece) - len(words)) + words
    return TextExcerpt(path, piece, whole)


def _goes_on(text: str, start: int) -> str:
    from signet_sync.text.chunking import speaker_at, turns  # slow import; most excerpts are of the beginning

    begun = list(turns(text))
    label = speaker_at(begun, start)
    return f"[{label} goes on]\n\n" if label and all(turn.start != start for turn in begun) else ""


def node_text(database: Database, node: GraphNode, limit: int) -> TextExcerpt:
    """Returns a node's text, at most `limit` characters: a condensation's own, else its part of the artifact."""
    if node.source_ref is None:
        text = node.content or ""
        return TextExcerpt("", text[:limit], len(text) <= limit)
    return excerpt(database, node.source_ref, node.start, node.end, limit)


def transcript_of(database: Database, ref: SessionRef, near_us: int | None = None) -> str | None:
    """Returns the path of a session's transcript with words: captured nearest to an instant, else the newest."""
    path: str | None = database.value(
        "select source_path from memory_artifacts where agent_id = ?1 and session_token = ?2 and session_id = ?3"
        f" and source_kind = 'transcript' and {text_of()} <> ''"
        " order by abs(captured_us - coalesce(?4, captured_us)), captured_us desc, source_path desc limit 1",
        (*ref[:3], near_us),
    )
    return path


def transcript_below(database: Database, node: GraphNode) -> str | None:
    """Returns the path of the first transcript that a summary or compaction was made of."""
    path: str | None = database.value(
        "select a.source_path from session_summary_children c"
        " join session_summaries n on n.agent_id = c.agent_id and n.id = c.child_id and n.source_type = 'chunk'"
        " join memory_artifacts a on a.id = n.artifact"
        " where c.agent_id = ? and c.parent_id = ? and n.end > 0 order by a.captured_us, a.source_path limit 1",
        (node.agent_id, node.id),
    )
    return path


# ── labels ──

_LABELS = {
    "node": "select case depth when 0 then source_type when 1 then 'arc' else 'epoch' end, latest_us, label"
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
    chunks: dict[str, GraphNode] = {}
    for thing in ids:
        if beginning(thing) != thing and thing not in chunks:
            whole = neighbours.node(database, agent_id, thing)
            chunks |= {one.id: one for one in neighbours.chunks(database, whole)} if whole is not None else {}
        if (chunk := chunks.get(thing)) is not None:
            found[thing] = f"chunk {day_of(chunk.latest_us)} · {flatten(chunk.label, LABEL)}"
            continue
        for kind, when, said in database.execute(_LABELS.get(thing[:1], _LABELS["node"]), (agent_id, thing)):
            day = when if isinstance(when, str) else day_of(when)
            found[thing] = f"{kind} {day} · {flatten(said, LABEL)}"
    return found
