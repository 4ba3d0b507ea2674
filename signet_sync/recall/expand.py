"""Follows a handle: the thing itself, what is around it, its words in the transcript, all within a budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from signet_sync.entities import store as entities_store
from signet_sync.errors import UsageError
from signet_sync.formats.paths import file_of, name_running_session, write_agent_option
from signet_sync.formats.timestamps import iso, local_day
from signet_sync.graph.store import neighbours, nodes
from signet_sync.graph.store.neighbours import Occurrence
from signet_sync.memories.store import memories
from signet_sync.recall.as_text import LABELLED
from signet_sync.recall.store import references
from signet_sync.sessions.live import store as live
from signet_sync.sessions.live.store import LiveSession
from signet_sync.statements import store as statements_store
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.sessions import SessionRef
from signet_sync.sync.store.texts import text_at
from signet_sync.text.sentences import basename, drop_rest
from signet_sync.text.token_estimate import cut, estimate_tokens, keep_end, line_about

BUDGET = 2_000
_LEFT_OUT = "[The rest is left out here; a larger budget shows more.]"
_EARLIER = "[Earlier turns are left out here.]"
_GOES_ON = "[The transcript goes on.]"
_SEARCHED = 4 << 20  # characters of a transcript that are searched for a statement's words
_LINES_BEFORE = 3


@dataclass(slots=True)
class _Found:
    """What a handle leads to, before the budget limits how much of it is shown."""

    node: dict[str, Any]
    text: str
    parents: Sequence[str] = ()
    children: Sequence[str] = ()
    siblings: Sequence[str] = ()
    memories: Sequence[str] = ()
    transcript: tuple[str, str] | None = None  # its path and words of it
    more: dict[str, Any] = field(default_factory=dict)


def expand(database: Database, agent_id: str, handle: str, budget: int = BUDGET) -> dict[str, Any]:
    """Returns the document of `expand --json`; all its texts together stay within `budget` tokens.

    Raises `UsageError` (`unknown-handle`, `ambiguous-handle`).
    """
    running, first = _find_running(database, agent_id, handle)
    try:
        resolved = references.resolve(database, agent_id, handle)
    except UsageError as error:
        if error.code != "unknown-handle" or not running:
            raise
        return _fit_budget(database, _show_running(database, agent_id, handle, running, first, budget), budget)
    found = _WALKS.get(resolved[0], _walk_node)(database, agent_id, resolved)
    if found is None:
        raise UsageError(f"{resolved} is no longer there", hint="run signet-sync reindex", code="unknown-handle")
    return _fit_budget(database, found, budget)


def _fit_budget(database: Database, found: _Found, budget: int) -> dict[str, Any]:
    """Returns the document: labels of neighbours take a fifth at most, then the thing's text, then the transcript's."""
    groups = {name: list(getattr(found, name)) for name in ("parents", "children", "siblings", "memories")}
    around = [thing for group in groups.values() for thing in group[:LABELLED]]
    labels: dict[str, str] = {}
    spent = 0
    for thing, label in neighbours.labels(database, found.node["agent_id"], around).items():
        if spent + (cost := estimate_tokens(label)) > budget // 5:
            break
        labels[thing] = label
        spent += cost
    room, transcript = budget - spent, found.transcript
    own = transcript is not None and found.node["kind"] != "chunk"
    text = cut(found.text, room - (room // 4 if own else 0), _LEFT_OUT)
    room -= estimate_tokens(text)
    excerpt = None if transcript is None else cut(transcript[1], room, _GOES_ON)
    return {
        "node": {"id": found.node["id"], "kind": found.node["kind"], "text": text, **found.node},
        **groups,
        "transcript": None if transcript is None else {"path": transcript[0], "excerpt": excerpt},
        "labels": labels,
        **found.more,
        "tokens": budget - room + estimate_tokens(excerpt or ""),
    }


# ── from each kind of thing ──


def _walk_node(database: Database, agent_id: str, node_id: str) -> _Found | None:
    node = neighbours.node(database, agent_id, node_id)
    if node is None:
        return None
    about = _describe(agent_id, node.id, node.source_type, node.label) | {
        "session_token": node.session_token,
        "depth": node.depth,
        "session_id": node.session_id,
        "thread": node.thread_id,
        "path": node.source_ref,
        "earliest": iso(node.earliest_us),
        "latest": iso(node.latest_us),
    }
    found = _Found(
        about,
        neighbours.node_text(database, node),
        parents=neighbours.parents(database, agent_id, node_id) or ([node.thread_id] if node.thread_id else []),
        children=neighbours.children(database, agent_id, node_id),
    )
    if node.depth:
        about["level"] = node.kind
        return found
    session = SessionRef(agent_id, node.session_token or "", node.session_id or "", None)
    found.siblings = neighbours.siblings(database, node)
    found.memories = neighbours.memories_and_statements(database, session)
    if node.source_type == "chunk":
        found.transcript = node.source_ref or "", found.text  # its own words: all of its text
    else:
        found.transcript = _find_transcript(database, [session], node.latest_us)
    return found


def _walk_thread(database: Database, agent_id: str, thread_id: str) -> _Found | None:
    """Follows a thread, whose text is what its newest session came to."""
    head = nodes.summary_of(database, agent_id, thread_id)
    if head is None:
        return None
    about = _describe(agent_id, thread_id, "thread", head.label) | {
        "project": head.project,
        "status": head.status,
        "sessions": head.sessions,
        "earliest": iso(head.earliest_us),
        "latest": iso(head.latest_us),
    }
    children, linked = neighbours.newest_of_thread(database, agent_id, thread_id)
    return _Found(about, drop_rest(head.sample), children=children, memories=linked)


def _walk_statement(database: Database, agent_id: str, statement_id: str) -> _Found | None:
    """Follows a statement to where it is stated: artifacts with lines of their bodies, running sessions with turns."""
    found = statements_store.get(database, agent_id, statement_id)
    if found is None:
        return None
    stated = neighbours.occurrences(database, agent_id, statement_id)
    first = stated[0] if stated else None
    about = _describe(agent_id, statement_id, "statement", f"{found.kind} of {basename(found.project) or agent_id}") | {
        "type": found.kind,
        "speaker": found.speaker,
        "status": found.status,
        "replaced_by": found.replaced_by,
        "thread": found.thread_id or None,
        "path": file_of(first.path) if first else None,
        "session_token": first.session.session_token if first else None,
        "earliest": iso(found.earliest_us),
        "latest": iso(found.latest_us),
    }
    sources = []
    for one in stated:
        name = name_running_session(one.path)
        running = {} if name is None else {"running": f"{name}#{one.line}"}
        sources.append({"path": one.path, "line": one.line, **running, "id": one.node_id})
    return _Found(
        about,
        found.text,
        parents=list(dict.fromkeys(one.node_id for one in stated if one.node_id is not None)),
        transcript=_find_words(database, agent_id, stated, found.text),
        more={"sources": sources},
    )


def _walk_memory(database: Database, agent_id: str, memory_id: str) -> _Found | None:
    """Follows a memory to its sessions."""
    memory = memories.get(database, agent_id, memory_id)
    if memory is None:
        return None
    sources = neighbours.sources_of_memory(database, agent_id, memory_id)
    about = _describe(agent_id, memory_id, "memory", f"{memory.type}, remembered {local_day(memory.created_at)}") | {
        "type": memory.type,
        "tags": list(memory.tags),
        "private": memory.private,
        "session_token": sources[0].session_token if sources else None,
        "latest": memory.created_at,
    }
    return _Found(
        about,
        memory.content,
        parents=[node_id for ref in sources for node_id in references.best(database, ref)],
        transcript=_find_transcript(database, sources),
    )


def _walk_entity(database: Database, agent_id: str, entity_id: str) -> _Found | None:
    profile = next(iter(entities_store.find(database, agent_id, entity_id)), None)
    if profile is None:
        return None
    rest = f"[All of it: signet-sync entity show {entity_id}{write_agent_option(agent_id)}]"
    about = _describe(agent_id, entity_id, profile.kind, profile.title) | {
        "type": profile.type,
        "status": profile.status,
        "path": profile.path,
        "latest": iso(profile.updated_us),
    }
    siblings = entities_store.neighbours(database, profile)[: neighbours.SIBLINGS]
    return _Found(about, "\n\n".join(filter(None, (profile.text, rest))), siblings=siblings)


# By the first letter of an id; others are nodes.
_WALKS: dict[str, Callable[[Database, str, str], _Found | None]] = {
    "t": _walk_thread, "f": _walk_statement, "m": _walk_memory, **dict.fromkeys("upr", _walk_entity)
}  # fmt: skip


def _describe(agent_id: str, thing_id: str, kind: str, label: str) -> dict[str, Any]:
    return {"id": thing_id, "kind": kind, "agent_id": agent_id, "session_token": None, "depth": None, "label": label}


# ── sessions still running ──


def _find_running(database: Database, agent_id: str, handle: str) -> tuple[list[LiveSession], int | None]:
    """Returns the sessions with live turns that a handle names by key or id; with `key#turn`, as of a hit, the turn."""
    handle = (name_running_session(handle.strip()) or handle).strip()
    every = live.sessions(database, agent_id)
    if found := [one for one in every if handle and handle in (one.session_key, one.session_id)]:
        return found, None
    name, _, turn = handle.rpartition("#")
    if not (name and turn.isdecimal() and len(turn) < 16):
        return [], None
    return [one for one in every if name in (one.session_key, one.session_id)], int(turn)


def _show_running(
    database: Database, agent_id: str, handle: str, running: Sequence[LiveSession], first: int | None, budget: int
) -> _Found:
    """Returns the newest turns of a running session, or those from the `first` on."""
    if len(running) > 1:
        names = ", ".join(one.session_id or one.session_key for one in running)
        raise UsageError(f"{handle!r} may mean {names}", hint="use one of them in full", code="ambiguous-handle")
    session = running[0]
    text = _read_turns(database, agent_id, running, lambda turn: turn >= (first or 0))
    about = _describe(agent_id, session.session_key, "live", session.session_key) | {
        "session_id": session.session_id,
        "turns": session.turns,
        "earliest": session.first_at,
        "latest": session.last_at,
    }
    return _Found(about, text if first is not None else keep_end(text, budget, _EARLIER))


def _read_turns(
    database: Database, agent_id: str, running: Iterable[LiveSession], wanted: Callable[[int], bool]
) -> str:
    from signet_sync.sessions.live.turns import SpokenTurn, render  # slow import; few handles are of running sessions

    said = (turn for one in running for turn in live.transcript(database, agent_id, one.session_key, one.session_id))
    return "\n\n".join(render([SpokenTurn(one.role, one.content, one.at)]) for one in said if wanted(one.turn))


# ── down to the transcript ──


def _find_transcript(
    database: Database, sessions: Iterable[SessionRef], near_us: int | None = None
) -> tuple[str, str] | None:
    """Returns the transcript of the first of these sessions that has one."""
    paths = (neighbours.transcript_of(database, ref, near_us) for ref in sessions)
    return next(((path, neighbours.excerpt(database, path)) for path in paths if path is not None), None)


def _find_words(
    database: Database, agent_id: str, stated: Sequence[Occurrence], statement: str
) -> tuple[str, str] | None:
    """Returns the lines around a statement: where a transcript states it, else where it mentions the same."""
    for one in stated:
        if (name := name_running_session(one.path)) is not None:
            running, _ = _find_running(database, agent_id, name)
            if said := _read_turns(database, agent_id, running, one.line.__eq__):
                return one.path, said
            continue
        path = neighbours.transcript_of(database, one.session)
        if path is None:
            continue
        text = text_at(database, path)
        line = one.line if one.path == path else line_about(text[:_SEARCHED], statement)
        start = neighbours.line_start(text, max(line - _LINES_BEFORE, 1))
        return path, neighbours.excerpt(database, path, start)
    return None
