"""Groups sessions of one agent that continue each other into threads; derives summary and roll-ups of each.

An arc condenses the sessions of one week, an epoch the arcs of one quarter. The text is deterministic, readable and
bounded; ids in it refer to what it condenses.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from signet_sync.formats.body import js_trim
from signet_sync.formats.handle import id_of
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.statement import Item
from signet_sync.formats.timestamps import day_of, week_of, week_span
from signet_sync.graph.nodes import NO_WORDS, ArtifactText, GraphNode, NodeKind, SessionNodes, best_of, span_of
from signet_sync.text import digest_mark
from signet_sync.text.sentences import basename, flatten, flatten_cell, shorten

Status = Literal["blocked", "open", "settled", "done", "aborted", "question-only"]

_PROJECT_LENGTH, _LINEAGE_LENGTH, _HARNESS_LENGTH = 60, 60, 30
# What differs for each session: uuids and hashes, counters and dates.
_PER_SESSION = late(r"[0-9a-f]{10}|\d{8}|\d{4}-\d\d-\d\d", re.ASCII | re.IGNORECASE)


class Thread(NamedTuple):
    """The identity of a thread: a project, else a lineage (a key that several sessions share), else one session.

    `id` is `t-…`, derived from the agent and this identity; `label` is one short flattened line for people; what a
    `project` is says `graph.nodes`.
    """

    agent_id: str
    id: str
    label: str
    project: str | None
    lineage: str | None


class ThreadSession(NamedTuple):
    """A session in its thread; a row of `thread_sessions`.

    `week` is the ISO week (`2026-W13`) of `latest_us` in UTC. `status` is how the session ended, `branch` and `tree`
    (the top of its worktree) where: None if unknown.
    """

    agent_id: str
    session_token: str
    session_id: str
    thread_id: str
    earliest_us: int
    latest_us: int
    week: str
    node_id: str
    source_ref: str
    sentence: str
    status: digest_mark.Status | None
    harness: str | None
    branch: str | None = None
    tree: str | None = None


class ThreadSummary(NamedTuple):
    """The summary of a thread; a row of `memory_thread_heads`. What it left open is in `statements`.

    `sample` is the sentence of the newest session, `node_id` its node, `harness` its harness.
    """

    agent_id: str
    thread_id: str
    label: str
    project: str | None
    session_key: str | None
    harness: str | None
    status: Status
    sessions: int
    earliest_us: int
    latest_us: int
    node_id: str
    source_ref: str
    sample: str


# ── which thread a session belongs to ──


def lineage_of(session_key: str | None, session_id: str) -> str | None:
    """Returns the key that a session shares with others (`agent:main:main`), None if it belongs to this session alone.

    A key belongs to one session if it is the session's id, or contains what differs for each: ten hexadecimal digits
    as uuids have, a date or eight digits.
    """
    key, own = js_trim(session_key or ""), js_trim(session_id)
    return None if not key or key == own or _PER_SESSION.search(key) else key


def thread_of(sources: Sequence[ArtifactText]) -> Thread | None:
    """Returns the thread of a session, by the best of its artifacts; None if that is noise or there is none."""
    best = best_of(sources)
    if best is None or best.noise:
        return None
    identity = best.identity
    lineage = "" if identity else lineage_of(best.session_key, best.session_id) or ""
    name = ("project", identity) if identity else ("source", lineage)
    if not name[1]:
        name = "session", best.session_id
    return Thread(
        best.agent_id,
        id_of("t", best.agent_id, *name, *(() if name[0] != "session" else (best.session_token,))),
        flatten_cell(basename(identity) or identity, _PROJECT_LENGTH)
        or flatten_cell(lineage, _LINEAGE_LENGTH)
        or "no project",
        identity or None,
        lineage or None,
    )


# ── what a session adds to its thread ──


def session_of(
    sources: Sequence[ArtifactText],
    thread: Thread,
    session_nodes: SessionNodes,
    items: Mapping[str, Sequence[Item]],
    derived: str | None,
    telling: ArtifactText | None,
    status: digest_mark.Status | None,
) -> ThreadSession:
    """Returns a session's row in its thread; `sources` are its artifacts (at least one), `items` theirs by path.

    Sentence and status are those of `telling` if it is given, else of the best artifact; a sentence that was `derived`
    is better, and so is a `status` that was. Without any, what artifacts list as open is how it ended.
    """
    best = next(node for node in session_nodes.nodes if node.id == session_nodes.best)
    lead = next(source for source in sources if source.source_path == best.source_ref)
    newest = max(sources, key=lambda source: (source.membership_us, source.source_path))
    telling = telling or lead
    status = status or digest_mark.status_of(telling.content)
    if status is None:
        left = {item.kind for some in items.values() for item in some if not item.done}
        status = "blocked" if "blocker" in left else "open" if left & {"next", "question"} else None
    return ThreadSession(
        best.agent_id, lead.session_token, lead.session_id, thread.id,
        min(span_of(source)[0] for source in sources), newest.membership_us, week_of(newest.membership_us),
        best.id, lead.source_path,
        flatten(derived or telling.sentence) or NO_WORDS, status,
        flatten_cell(js_trim(lead.harness or ""), _HARNESS_LENGTH) or None, newest.branch, newest.tree,
    )  # fmt: skip


# ── the summary ──


def summarize(thread: Thread, newest: ThreadSession, sessions: int, earliest_us: int) -> ThreadSummary:
    """Summarizes a thread by its newest session: how many sessions there are, and when the first one began."""
    return ThreadSummary(
        *thread, newest.harness, newest.status or "settled", sessions, earliest_us, newest.latest_us, newest.node_id,
        newest.source_ref, newest.sentence,
    )  # fmt: skip


# ── roll-ups ──

SESSIONS, ARCS, LISTED = 12, 14, 8
_LABEL_LENGTH, _LINE_LENGTH = 160, 140

_OPEN_KINDS = ("blocker", "next", "question")


def roll_up_id(thread: Thread, period: str) -> str:
    """Returns the id of a thread's arc over an ISO week, or its epoch over a quarter, whether it exists or not."""
    return id_of("a" if "W" in period else "e", thread.agent_id, thread.id, period)


def arc(
    thread: Thread, week: str, sessions: Sequence[ThreadSession], stated: Iterable[tuple[str, str]]
) -> GraphNode | None:
    """Condenses the sessions of a thread in one ISO week, in any order; None for fewer than two.

    The text has lines of the newest sessions, then what these `stated` and still holds: decisions, open items.
    """
    if len(sessions) < 2:
        return None
    newest = sorted(sessions, key=lambda one: (-one.latest_us, one.session_token, one.session_id))
    first, last = week_span(week)
    title = f"{thread.label}, {day_of(first)} to {day_of(last)}: {len(newest)} sessions"
    held = list(stated)
    decided = [_cut(text) for kind, text in held if kind == "decision"]
    still = [_cut(f"{kind}: {text}") for wanted in _OPEN_KINDS for kind, text in held if kind == wanted]
    told = [f"{day_of(one.latest_us)} {_cut(one.sentence)} ({one.node_id})" for one in newest[:SESSIONS]]
    lists = _list("", told), _list("Decisions:", decided[:LISTED]), _list("Open:", still[:LISTED])
    content = "\n\n".join(filter(None, (title, *lists)))
    label = f"{len(newest)} sessions of {week}: {newest[0].sentence}"
    span = min(one.earliest_us for one in newest), newest[0].latest_us
    return _node(thread, roll_up_id(thread, week), "arc", span, label, content)


def epoch(thread: Thread, quarter: str, arcs: Sequence[GraphNode]) -> GraphNode | None:
    """Condenses the arcs of a thread in one quarter, in any order; None for fewer than two.

    The text has lines of the newest arcs.
    """
    if len(arcs) < 2:
        return None
    newest = sorted(arcs, key=lambda node: (-node.latest_us, node.id))
    span = min(node.earliest_us for node in newest), newest[0].latest_us
    title = f"{thread.label}, {quarter}, {day_of(span[0])} to {day_of(span[1])}: {len(newest)} weeks"
    content = f"{title}\n\n{_list('', (f'{_cut(node.label)} ({node.id})' for node in newest[:ARCS]))}"
    label = f"{len(newest)} weeks of {quarter}: {newest[0].label.partition(': ')[2]}"
    return _node(thread, roll_up_id(thread, quarter), "epoch", span, label, content)


def _list(name: str, texts: Iterable[str]) -> str:
    """Returns a list under its name; nothing without items."""
    lines = [f"- {text}" for text in texts]
    return "\n".join([name, *lines] if name else lines) if lines else ""


def _cut(text: str) -> str:
    return shorten(text, _LINE_LENGTH)


def _node(thread: Thread, node_id: str, kind: NodeKind, span: tuple[int, int], label: str, content: str) -> GraphNode:
    return GraphNode(
        thread.agent_id, node_id, kind, "condensation", 1 if kind == "arc" else 2, None, thread.id, None, None, *span,
        0, len(content), shorten(label, _LABEL_LENGTH), content,
    )  # fmt: skip
