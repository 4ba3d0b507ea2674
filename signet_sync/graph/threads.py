"""Groups sessions of one agent that continue each other into threads, and derives each thread's summary."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from signet_sync.formats.body import js_trim
from signet_sync.formats.calendar import week_of
from signet_sync.formats.fact import Aspect, Item
from signet_sync.formats.handle import id_of
from signet_sync.formats.lazy_pattern import late
from signet_sync.graph.nodes import NO_WORDS, ArtifactText, SessionNodes, best_of, span_of
from signet_sync.text import digest_mark
from signet_sync.text.sentences import basename, flatten, flatten_cell

Status = Literal["blocked", "open", "settled", "done", "aborted", "question-only"]

SUMMARY_SESSIONS = 12
DECISIONS, NEXT_STEPS, LOOPS, BLOCKERS = 5, 5, 8, 5
SUMMARY_DECISIONS, SUMMARY_LOOPS, SUMMARY_BLOCKERS, SUMMARY_REFS = 5, 5, 5, 4
CLOSED = 60
HARNESSES = 4

_CLOSABLE = ("next", "question", "blocker")
_PROJECT_LENGTH, _LINEAGE_LENGTH, _HARNESS_LENGTH = 60, 60, 30
# What differs for each session: uuids and hashes, counters and dates, random letters and digits.
_PER_SESSION = late(r"[0-9a-f]{10}|\d{8}|\d{4}-\d\d-\d\d", re.ASCII | re.IGNORECASE)
_PREFIX = 8
_LONG_RUN = late(r"[0-9a-z]{16,}", re.ASCII | re.IGNORECASE)


class Thread(NamedTuple):
    """The identity of a thread: a project, else a lineage (a key that several sessions share), else one session.

    `key` is Signet's form `project:…` or `source:…`, or `session:…`, with `%` and `#` percent-encoded; `id` is `t-…`,
    derived from the agent and this identity; `label` is one short flattened line for people. `project` is a project's
    identity (`graph.projects`).
    """

    agent_id: str
    id: str
    key: str
    label: str
    project: str | None
    lineage: str | None


class ThreadSession(NamedTuple):
    """A session in its thread; a row of `thread_sessions`. Texts are flattened lines, most important first.

    `loops` are open items: next steps and open questions; `closed` are such items that the session marks as done,
    casefolded. `week` is the ISO week (`2026-W13`) of `latest_us` in UTC. `status` is how the session ended, None if
    unknown.
    """

    agent_id: str
    session_token: str
    session_id: str
    thread_id: str
    earliest_us: int
    latest_us: int
    week: str
    node_id: str
    source_type: str
    source_ref: str
    sentence: str
    status: digest_mark.Status | None
    harness: str | None
    decisions: tuple[str, ...]
    next_steps: tuple[str, ...]
    loops: tuple[str, ...]
    blockers: tuple[str, ...]
    closed: tuple[str, ...]


class ThreadSummary(NamedTuple):
    """The summary of a thread; a row of `memory_thread_heads`.

    `sample` is the sentence of the newest session, `node_id` its node, `refs` the ids of the newest sessions, newest
    first, and of the newest arc. `harness` lists the harnesses of the newest sessions, the latest used first. `said_by`
    are the nodes of the sessions that said the next action and the first blocker, "" for the newest session.
    """

    agent_id: str
    thread_id: str
    thread_key: str
    label: str
    project: str | None
    session_key: str | None
    harness: str | None
    status: Status
    sessions: int
    earliest_us: int
    latest_us: int
    node_id: str
    source_type: str
    source_ref: str
    sample: str
    next_action: str | None
    decisions: tuple[str, ...]
    loops: tuple[str, ...]
    blockers: tuple[str, ...]
    refs: tuple[str, ...]
    said_by: tuple[str, str]


# ── which thread a session belongs to ──


def lineage_of(session_key: str | None, session_id: str) -> str | None:
    """Returns the key that a session shares with others (`agent:main:main`), None if it belongs to this session alone.

    A key belongs to one session if it is the session's id or contains its first eight characters, or contains what
    differs for each: a uuid, ten hexadecimal digits, a date or eight digits, or a run of sixteen mixed letters and
    digits.
    """
    key, own = js_trim(session_key or ""), js_trim(session_id)
    if not key or key == own or (len(own) >= _PREFIX and own[:_PREFIX] in key) or _PER_SESSION.search(key):
        return None
    mixed = any(not run.isalpha() and not run.isdecimal() for run in _LONG_RUN.findall(key))
    return None if mixed else key


def thread_of(sources: Sequence[ArtifactText]) -> Thread | None:
    """Returns the thread of a session, by the best of its artifacts; None if that is noise or there is none."""
    best = best_of(sources)
    if best is None or best.noise:
        return None
    identity = best.found.identity
    lineage = "" if identity else lineage_of(best.session_key, best.session_id) or ""
    name = ("project", identity) if identity else ("source", lineage)
    if not name[1]:
        name = "session", best.session_id
    return Thread(
        best.agent_id,
        id_of("t", best.agent_id, *name, *(() if name[0] != "session" else (best.session_token,))),
        f"{name[0]}:{_quoted(name[1])}",
        flatten_cell(basename(identity) or identity, _PROJECT_LENGTH)
        or flatten_cell(lineage, _LINEAGE_LENGTH)
        or "no project",
        identity or None,
        lineage or None,
    )


def _quoted(part: str) -> str:
    return part.replace("%", "%25").replace("#", "%23")


# ── what a session adds to its thread ──


def session_of(
    sources: Sequence[ArtifactText],
    thread: Thread,
    session_nodes: SessionNodes,
    items: Mapping[str, Sequence[Item]],
    derived: str | None = None,
    telling: ArtifactText | None = None,
    status: digest_mark.Status | None = None,
) -> ThreadSession:
    """Returns a session's row in its thread; `sources` are its artifacts (at least one), `items` theirs by path.

    The newest artifact with an item decides: one that is ticked there is closed, one that was opened again is open.
    Sentence and status are those of `telling` if it is given, else of the best artifact; a sentence that was `derived`
    is better, and so is a `status` that was.
    """
    best = next(node for node in session_nodes.nodes if node.id == session_nodes.best)
    lead = next(source for source in sources if source.source_path == best.source_ref)
    latest = max(source.membership_us for source in sources)
    telling = telling or lead
    said = _newest_items(sources, items)
    closed = tuple(dict.fromkeys(words for (aspect, words), item in said.items() if item.done and aspect in _CLOSABLE))
    steps = _open(said, "next")
    questions = _open(said, "question")
    blockers = _open(said, "blocker")[:BLOCKERS]
    return ThreadSession(
        best.agent_id,
        sources[0].session_token,
        sources[0].session_id,
        thread.id,
        min(span_of(source)[0] for source in sources),
        latest,
        week_of(latest),
        best.id,
        best.source_type,
        best.source_ref or "",
        flatten(derived or telling.sentence) or NO_WORDS,
        status or digest_mark.status_of(telling.content) or _listed_status(steps, questions, blockers),
        flatten_cell(js_trim(lead.harness or ""), _HARNESS_LENGTH) or None,
        _open(said, "decision")[:DECISIONS],
        steps[:NEXT_STEPS],
        (*questions, *steps[NEXT_STEPS:])[:LOOPS],
        blockers,
        closed[:CLOSED],
    )


def _listed_status(
    steps: Sequence[str], questions: Sequence[str], blockers: Sequence[str]
) -> Literal["blocked", "open"] | None:
    """Returns how a session ended by what its artifacts list as open; None if they list nothing."""
    if blockers:
        return "blocked"
    return "open" if steps or questions else None


def _newest_items(
    sources: Sequence[ArtifactText], items: Mapping[str, Sequence[Item]]
) -> dict[tuple[Aspect, str], Item]:
    """Returns every item once, in the newest artifact's words, newest first; in one artifact a ticked one counts."""
    said: dict[tuple[Aspect, str], Item] = {}
    for source in sorted(sources, key=lambda s: (-s.captured_us, s.source_kind != "summary", s.source_path)):
        own: dict[tuple[Aspect, str], Item] = {}
        for item in sorted(items.get(source.source_path, ()), key=lambda i: (not i.done, i.line, i.aspect, i.text)):
            own.setdefault((item.aspect, item_key(item.text)), item)
        for key, item in sorted(own.items(), key=lambda pair: (pair[1].line, pair[0])):
            said.setdefault(key, item)
    return {key: item for key, item in said.items() if key[1]}


def _open(said: Mapping[tuple[Aspect, str], Item], aspect: Aspect) -> tuple[str, ...]:
    return tuple(item.text for item in said.values() if item.aspect == aspect and not item.done)


def item_key(text: str) -> str:
    """Returns a key that is equal for equal items: their words, without case and final punctuation."""
    return " ".join(text.casefold().split()).rstrip(" .,;:!")


# ── the summary ──


class OpenItems(NamedTuple):
    """What sessions of a thread leave open: the next action, other steps and questions, blockers.

    `planned_by` and `blocked_by` are the nodes of the sessions that said the next action and the first blocker.
    """

    next_action: str | None
    loops: tuple[str, ...]
    blockers: tuple[str, ...]
    planned_by: str = ""
    blocked_by: str = ""


def newest_first(sessions: Iterable[ThreadSession]) -> list[ThreadSession]:
    """Sorts sessions of one agent by time, newest first, ties by token and id."""
    return sorted(sessions, key=lambda s: (-s.latest_us, s.session_token, s.session_id))


def left_open(newest: Sequence[ThreadSession], past: Iterable[str] = ()) -> OpenItems:
    """Returns what sessions (newest first) leave open, without what a later one marks as done and what is `past`.

    A newer list of next steps replaces older ones, and so does a newer list of blockers.
    """
    closed = set(map(item_key, past))
    loops: dict[str, str] = {}
    blockers: dict[str, str] = {}
    planned = blocked = False
    action: str | None = None
    planned_by = blocked_by = ""
    for session in newest:
        steps = () if planned else session.next_steps
        if steps:
            planned, planned_by = True, session.node_id
            action = next((text for text in steps if item_key(text) not in closed), None)
        _add_open(loops, (*steps, *session.loops), closed)
        if session.blockers and not blocked:
            blocked, blocked_by = True, session.node_id
            _add_open(blockers, session.blockers, closed)
        closed.update(session.closed)
    if action is not None:
        loops.pop(item_key(action), None)
    return OpenItems(
        action,
        tuple(text for key, text in loops.items() if key not in blockers),
        tuple(blockers.values()),
        planned_by,
        blocked_by,
    )


def _add_open(found: dict[str, str], texts: Iterable[str], closed: Collection[str]) -> None:
    for text in texts:
        key = item_key(text)
        if key not in closed:
            found.setdefault(key, text)


def decided(newest: Iterable[ThreadSession]) -> tuple[str, ...]:
    """Returns the decisions of sessions (newest first), each once."""
    found: dict[str, str] = {}
    for session in newest:
        _add_open(found, session.decisions, ())
    return tuple(found.values())


def stated(sessions: Iterable[ThreadSession]) -> Iterator[tuple[Aspect, str]]:
    """Yields what sessions leave open."""
    for session in sessions:
        yield from (("next", text) for text in (*session.next_steps, *session.loops))
        yield from (("question", text) for text in session.loops)
        yield from (("blocker", text) for text in session.blockers)


def summarize(
    thread: Thread,
    newest: Sequence[ThreadSession],
    sessions: int,
    earliest_us: int,
    arc: str | None,
    past: Collection[str] = (),
) -> ThreadSummary:
    """Summarizes a thread from its newest sessions (at least one; at most `SUMMARY_SESSIONS` are used).

    `sessions` is how many there are in all, `earliest_us` when the first began, `arc` the newest arc's id. `past` are
    statements of theirs that are not current any more.
    """
    counted = newest_first(newest)[:SUMMARY_SESSIONS]
    latest = counted[0]
    left = left_open(counted, past)
    return ThreadSummary(
        thread.agent_id,
        thread.id,
        thread.key,
        thread.label,
        thread.project,
        thread.lineage,
        ", ".join([*dict.fromkeys(session.harness for session in counted if session.harness)][:HARNESSES]) or None,
        _status(latest, left),
        sessions,
        min(earliest_us, latest.earliest_us),
        latest.latest_us,
        latest.node_id,
        latest.source_type,
        latest.source_ref,
        latest.sentence,
        left.next_action,
        decided(counted)[:SUMMARY_DECISIONS],
        left.loops[:SUMMARY_LOOPS],
        left.blockers[:SUMMARY_BLOCKERS],
        (*(session.node_id for session in counted[:SUMMARY_REFS]), *([arc] if arc else [])),
        (_unless_newest(left.planned_by, latest), _unless_newest(left.blocked_by, latest)),
    )


def _unless_newest(node_id: str, latest: ThreadSession) -> str:
    return "" if node_id == latest.node_id else node_id


def _status(latest: ThreadSession, left: OpenItems) -> Status:
    """Returns how the newest session ended, if known; a thread whose sessions left something open is not done."""
    if latest.status in ("blocked", "open", "aborted"):
        return latest.status
    if latest.blockers:
        return "blocked"
    if left.next_action or left.loops:
        return "open"
    return latest.status or "settled"


# ── rows ──


_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))
_Row = TypeVar("_Row", ThreadSession, ThreadSummary)


def columns_of(row: ThreadSession | ThreadSummary) -> tuple[Any, ...]:
    """Returns the columns of a row; the last one, `told`, holds its lists as canonical JSON."""
    lists = {name: value for name, value in row._asdict().items() if isinstance(value, tuple)}
    return (*(value for value in row if not isinstance(value, tuple)), _CANONICAL.encode(lists))


def row_of(kind: type[_Row], columns: Sequence[Any]) -> _Row:
    """Returns the row that these columns hold."""
    *plain, lists_json = columns
    lists: dict[str, list[str]] = json.loads(lists_json)
    names: tuple[str, ...] = kind._fields
    return kind._make([*plain, *(tuple(lists[name]) for name in names[len(plain) :])])
