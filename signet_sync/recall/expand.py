"""Follows a handle: the thing itself, what is around it, its words in the transcript, all within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from signet_sync.entities import store as entities_store
from signet_sync.errors import UsageError
from signet_sync.formats.paths import file_of, running_session, write_agent_option
from signet_sync.formats.timestamps import iso, local_day
from signet_sync.graph.nodes import GraphNode
from signet_sync.graph.store import neighbours, nodes
from signet_sync.graph.store.neighbours import Occurrence, TextExcerpt
from signet_sync.graph.threads import ThreadSummary
from signet_sync.memories.store import memories, promotions, recall_events
from signet_sync.recall.as_text import LABELLED
from signet_sync.recall.store import references
from signet_sync.sessions.live import store as live
from signet_sync.sessions.live.store import LiveSession, LiveTurn
from signet_sync.statements import store as statements_store
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.sessions import SessionRef
from signet_sync.sync.store.texts import text_at
from signet_sync.text.sentences import basename, drop_rest
from signet_sync.text.token_estimate import CHARACTERS, cut, ending, estimate_tokens, line_about

BUDGET = 2_000
MOST_CHILDREN = 100
_LEFT_OUT = "[The rest is left out here; a larger budget shows more.]"
_EARLIER = "[Earlier turns are left out here.]"
_GOES_ON = "[The transcript goes on.]"
_SEARCHED = 4 << 20  # characters of a transcript that are searched for a statement's words
_LINES_BEFORE = 3
_LISTED = 8
_BESIDE = 4  # places of a transcript
# What a thread's text lists of what still holds.
_HEADINGS = {
    "Next": ("next",),
    "Decisions": ("decision", "constraint"),
    "Open": ("question",),
    "Blockers": ("blocker",),
}


@dataclass(slots=True)
class _Found:
    """What a handle leads to, before the budget limits how much of it is shown."""

    node: dict[str, Any]
    text: TextExcerpt
    parents: Sequence[str] = ()
    children: Sequence[str] = ()
    siblings: Sequence[str] = ()
    memories: Sequence[str] = ()
    transcript: TextExcerpt | None = None
    more: dict[str, Any] = field(default_factory=dict)


def expand(database: Database, agent_id: str, handle: str, budget: int = BUDGET) -> dict[str, Any]:
    """Returns the document of `expand --json`; all its texts together stay within `budget` tokens.

    Raises `UsageError` (`unknown-handle`, `ambiguous-handle`).
    """
    running = _running(database, agent_id, handle)
    try:
        resolved = references.resolve(database, agent_id, handle)
    except UsageError as error:
        if error.code != "unknown-handle" or not running:
            raise
        return _within(database, _live(database, agent_id, handle, running, budget), budget)
    found = _WALKS[resolved.tier](database, agent_id, resolved.id, budget * CHARACTERS)
    if found is None:
        raise UsageError(f"{resolved.id} is no longer there", hint="run signet-sync reindex", code="unknown-handle")
    if running:
        found.more["live"] = [{"session_key": one.session_key, "turns": one.turns} for one in running]
    return _within(database, found, budget)


# ── from each kind of thing ──


def _node(database: Database, agent_id: str, node_id: str, limit: int) -> _Found | None:
    node = neighbours.node(database, agent_id, node_id)
    if node is None:
        return None
    children = neighbours.children(database, agent_id, node_id)
    beside, most = node, neighbours.SIBLINGS
    if node.source_type == "chunk":
        passage, most = neighbours.find_passage(database, node, node_id), _BESIDE
        node = node._replace(label=passage.label) if node_id == node.id else passage
    thread = [] if node.thread_id is None else [node.thread_id]
    found = _Found(
        _about_node(node),
        neighbours.node_text(database, node, limit),
        parents=neighbours.parents(database, agent_id, node_id) or thread,
        children=children[:MOST_CHILDREN],
        siblings=neighbours.siblings(database, beside, most),
        memories=_list_linked(database, _sessions(database, node)),
        transcript=_transcript_below(database, node, limit),
    )
    if len(children) > MOST_CHILDREN:
        found.more["children_left_out"] = len(children) - MOST_CHILDREN
    return found


def _about_node(node: GraphNode) -> dict[str, Any]:
    about = {
        "id": node.id,
        "kind": node.source_type,
        "agent_id": node.agent_id,
        "session_token": node.session_token,
        "depth": node.depth,
        "session_id": node.session_id,
        "label": node.label,
        "thread": node.thread_id,
        "path": node.source_ref,
        "earliest": iso(node.earliest_us),
        "latest": iso(node.latest_us),
    }
    return about | {"level": node.kind} if node.depth else about


def _sessions(database: Database, node: GraphNode) -> list[SessionRef]:
    if node.session_token is None or node.session_id is None:
        return neighbours.sessions_below(database, node.agent_id, node.id)
    return [SessionRef(node.agent_id, node.session_token, node.session_id, None)]


def _thread(database: Database, agent_id: str, thread_id: str, limit: int) -> _Found | None:
    head = nodes.summary_of(database, agent_id, thread_id)
    if head is None:
        return None
    below = neighbours.sessions_below(database, agent_id, thread_id)
    about = _about(agent_id, thread_id, "thread", head.label) | {
        "key": head.thread_key,
        "project": head.project,
        "status": head.status,
        "sessions": head.sessions,
        "earliest": iso(head.earliest_us),
        "latest": iso(head.latest_us),
    }
    return _Found(
        about,
        TextExcerpt(head.source_ref, _head_text(database, head), True),
        children=neighbours.newest_of_thread(database, agent_id, thread_id),
        memories=_list_linked(database, below),
        transcript=_first_transcript(database, below, limit),
    )


def _head_text(database: Database, head: ThreadSummary) -> str:
    """Returns a thread summary as readable text: its newest session, and what still holds."""
    stated = statements_store.list_of_thread(database, head.agent_id, head.thread_id)
    parts = [drop_rest(head.sample)]
    for title, kinds in _HEADINGS.items():
        some = [text for kind, text in stated if kind in kinds]
        if some:
            parts += ["", f"{title}:", *(f"- {text}" for text in some[:_LISTED])]
    return "\n".join(parts)


def _statement(database: Database, agent_id: str, statement_id: str, limit: int) -> _Found | None:
    found = statements_store.get(database, agent_id, statement_id)
    if found is None:
        return None
    stated = neighbours.occurrences(database, agent_id, statement_id)
    about = _about(agent_id, statement_id, "statement", f"{found.kind} of {basename(found.project) or agent_id}") | {
        "type": found.kind,
        "speaker": found.speaker,
        "status": found.status,
        "replaced_by": found.replaced_by,
        "thread": found.thread_id or None,
        "path": file_of(stated[0].path) if stated else None,
        "session_token": stated[0].session.session_token if stated else None,
        "earliest": iso(found.earliest_us),
        "latest": iso(found.latest_us),
    }
    return _Found(
        about,
        TextExcerpt(stated[0].path if stated else "", found.text, True),
        parents=list(dict.fromkeys(one.node_id for one in stated if one.node_id is not None)),
        siblings=neighbours.list_beside(database, stated[0], statement_id) if stated else (),
        transcript=_transcript_of_statement(database, agent_id, stated, found.text, limit),
        more={"sources": [_source(one) for one in stated]},
    )


def _source(stated: Occurrence) -> dict[str, Any]:
    """Returns where a statement is stated: an artifact and the line of its body, or a running session and its turn."""
    name = running_session(stated.path)
    running = {} if name is None else {"running": f"{name}#{stated.line}"}
    return {"path": stated.path, "line": stated.line, **running, "id": stated.node_id}


def _memory(database: Database, agent_id: str, memory_id: str, limit: int) -> _Found | None:
    memory = memories.get(database, agent_id, memory_id)
    if memory is None:
        return None
    sources = neighbours.sources_of_memory(database, agent_id, memory_id)
    about = _about(agent_id, memory_id, "memory", f"{memory.type}, remembered {local_day(memory.created_at)}") | {
        "type": memory.type,
        "tags": list(memory.tags),
        "private": memory.private,
        "session_token": sources[0].session_token if sources else None,
        "latest": memory.created_at,
    }
    return _Found(
        about,
        TextExcerpt("", memory.content, True),
        parents=[node_id for ref in sources for node_id in references.best(database, ref)],
        transcript=_first_transcript(database, sources, limit),
        more={
            "recalled": _describe_recalls(database, agent_id, memory_id),
            "risen": _describe_promotion(database, agent_id, memory_id),
        },
    )


def _describe_recalls(database: Database, agent_id: str, memory_id: str) -> dict[str, Any] | None:
    found = recall_events.totals_of(database, agent_id, memory_id)
    if found is None:
        return None
    return {"hits": found.hits, "queries": found.queries, "days": found.days, "last": iso(found.last_us)}


def _describe_promotion(database: Database, agent_id: str, memory_id: str) -> dict[str, Any] | None:
    risen = promotions.find_of_memory(database, agent_id, memory_id)
    if risen is None:
        return None
    undone = None if risen.undone_us is None else iso(risen.undone_us)
    return {"at": iso(risen.at_us), "score": round(risen.memory.score, 6), "undone": undone}


def _walk_entity(database: Database, agent_id: str, entity_id: str, limit: int) -> _Found | None:
    profile = next(iter(entities_store.find(database, agent_id, entity_id)), None)
    if profile is None:
        return None
    rest = f"[All of it: signet-sync entity show {entity_id}{write_agent_option(agent_id)}]"
    text = "\n\n".join(filter(None, (profile.text, rest)))
    about = _about(agent_id, entity_id, profile.kind, profile.title) | {
        "type": profile.type,
        "status": profile.status,
        "path": profile.path,
        "latest": iso(profile.updated_us),
    }
    return _Found(
        about,
        TextExcerpt(profile.path, text, True),
        siblings=entities_store.neighbours(database, profile)[: neighbours.SIBLINGS],
    )


_Walk = Callable[[Database, str, str, int], "_Found | None"]
_WALKS: dict[str, _Walk] = {
    "node": _node, "thread": _thread, "statement": _statement, "memory": _memory, "curated": _walk_entity,
}  # fmt: skip


def _about(agent_id: str, thing_id: str, kind: str, label: str) -> dict[str, Any]:
    return {
        "id": thing_id,
        "kind": kind,
        "agent_id": agent_id,
        "session_token": None,
        "depth": None,
        "label": label,
    }


def _list_linked(database: Database, sessions: Iterable[SessionRef]) -> list[str]:
    """Returns the memories of some sessions, and the statements that they state."""
    every = (thing for ref in sessions for thing in neighbours.memories_and_statements(database, ref))
    return list(dict.fromkeys(every))[: neighbours.LINKED]


# ── sessions still running ──


def _running(database: Database, agent_id: str, handle: str) -> list[LiveSession]:
    """Returns the sessions with live turns that a handle names: key, id or a beginning; `key#turn` as in `recall`."""
    handle = running_session(handle.strip()) or handle
    every = live.sessions(database, agent_id)
    names = {handle.strip(), _turn_of(handle)[0]}
    exact = [one for one in every if one.session_key in names or one.session_id in names - {""}]
    start = handle.strip()
    if exact or len(start) < 3:
        return exact
    return [one for one in every if one.session_key.startswith(start) or one.session_id.startswith(start)]


def _turn_of(handle: str) -> tuple[str, int | None]:
    """Splits `key#turn` into key (or id) and turn; any other form is returned whole, with None."""
    name, _, turn = handle.strip().rpartition("#")
    return (name, int(turn)) if name and turn.isdecimal() and len(turn) < 16 else (handle.strip(), None)


def _live(database: Database, agent_id: str, handle: str, running: Sequence[LiveSession], budget: int) -> _Found:
    """Returns the newest turns of a running session, or with `key#turn` those from that turn on."""
    if len(running) > 1:
        names = ", ".join(one.session_id or one.session_key for one in running)
        raise UsageError(f"{handle!r} may mean {names}", hint="use one of them in full", code="ambiguous-handle")
    session = running[0]
    first = _turn_of(handle)[1] if handle.strip() != session.session_key else None
    turns = live.transcript(database, agent_id, session.session_key, session.session_id)
    text = "\n\n".join(_show_turn(turn) for turn in turns if first is None or turn.turn >= first)
    about = _about(agent_id, session.session_key, "live", session.session_key) | {
        "session_id": session.session_id,
        "turns": session.turns,
        "earliest": session.first_at,
        "latest": session.last_at,
    }
    return _Found(about, TextExcerpt("", text if first is not None else ending(text, budget, _EARLIER), True))


def _show_turn(turn: LiveTurn) -> str:
    from signet_sync.sessions.live.turns import SpokenTurn, render  # slow import; few handles are of running sessions

    return render([SpokenTurn(turn.role, turn.content, turn.at)])


def _read_turn(database: Database, agent_id: str, running: Sequence[LiveSession], number: int) -> str:
    """Returns a turn of running sessions."""
    turns = (turn for one in running for turn in live.transcript(database, agent_id, one.session_key, one.session_id))
    return "\n\n".join(_show_turn(turn) for turn in turns if turn.turn == number)


# ── down to the transcript ──


def _transcript_below(database: Database, node: GraphNode, limit: int) -> TextExcerpt | None:
    """Returns the beginning of the transcript that a node leads to; for a chunk, its own words."""
    if node.source_type == "chunk" and node.source_ref is not None:
        return neighbours.excerpt(database, node.source_ref, node.start, node.end, limit)
    if node.depth:
        return _first_transcript(database, _sessions(database, node), limit)
    path = neighbours.transcript_below(database, node)
    if path is not None:
        return neighbours.excerpt(database, path, 0, None, limit)
    return _first_transcript(database, _sessions(database, node), limit, node.latest_us)


def _first_transcript(
    database: Database, sessions: Iterable[SessionRef], limit: int, near_us: int | None = None
) -> TextExcerpt | None:
    """Returns the beginning of the transcript of the first of these sessions that has one."""
    for ref in sessions:
        path = neighbours.transcript_of(database, ref, near_us)
        if path is not None:
            return neighbours.excerpt(database, path, 0, None, limit)
    return None


def _transcript_of_statement(
    database: Database, agent_id: str, stated: Sequence[Occurrence], statement: str, limit: int
) -> TextExcerpt | None:
    """Returns the lines around a statement: where a transcript states it, else where it mentions the same."""
    for one in stated:
        if (name := running_session(one.path)) is not None:
            said = _read_turn(database, agent_id, _running(database, agent_id, name), one.line)
            if said:
                return TextExcerpt(one.path, said[:limit], len(said) <= limit)
            continue
        path = neighbours.transcript_of(database, one.session)
        if path is None:
            continue
        text = text_at(database, path)
        line = one.line if one.path == path else line_about(text[:_SEARCHED], statement)
        start = neighbours.line_start(text, max(line - _LINES_BEFORE, 1))
        return neighbours.excerpt(database, path, start, None, limit)
    return None


# ── within the budget ──


def _within(database: Database, found: _Found, budget: int) -> dict[str, Any]:
    """Returns the document: labels of neighbours take a fifth at most, then the thing's text, then the transcript's."""
    around = [
        thing for group in (found.parents, found.children, found.siblings, found.memories) for thing in group[:LABELLED]
    ]
    labels, spent = _labels(database, found.node["agent_id"], around, budget // 5)
    room = budget - spent
    own = found.transcript is not None and found.node["kind"] != "chunk"
    text = cut(found.text.text, room - (room // 4 if own else 0), _LEFT_OUT, whole=found.text.whole)
    room -= estimate_tokens(text)
    transcript = None
    if found.transcript is not None:
        excerpt = cut(found.transcript.text, room, _GOES_ON, whole=found.transcript.whole)
        room -= estimate_tokens(excerpt)
        transcript = {"path": found.transcript.path, "excerpt": excerpt}
    return {
        "node": {"id": found.node["id"], "kind": found.node["kind"], "text": text, **found.node},
        "parents": list(found.parents),
        "children": list(found.children),
        "siblings": list(found.siblings),
        "memories": list(found.memories),
        "transcript": transcript,
        "labels": labels,
        **found.more,
        "tokens": budget - room,
    }


def _labels(database: Database, agent_id: str, ids: Sequence[str], room: int) -> tuple[dict[str, str], int]:
    """Returns one line for as many of the ids as fit, and the tokens that they cost."""
    shown: dict[str, str] = {}
    spent = 0
    for thing, label in neighbours.labels(database, agent_id, ids).items():
        cost = estimate_tokens(label)
        if spent + cost > room:
            break
        shown[thing] = label
        spent += cost
    return shown, spent
