"""Groups sessions of one agent that continue each other into threads, and derives each thread's summary."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from signet_sync.formats.body import js_trim
from signet_sync.formats.handle import id_of
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.statement import Item
from signet_sync.formats.timestamps import week_of
from signet_sync.graph.nodes import NO_WORDS, ArtifactText, SessionNodes, best_of, span_of
from signet_sync.text import digest_mark
from signet_sync.text.sentences import basename, flatten, flatten_cell

Status = Literal["blocked", "open", "settled", "done", "aborted", "question-only"]

SUMMARY_SESSIONS = 12
HARNESSES = 4

_PROJECT_LENGTH, _LINEAGE_LENGTH, _HARNESS_LENGTH = 60, 60, 30
# What differs for each session: uuids and hashes, counters and dates, random letters and digits.
_PER_SESSION = late(r"[0-9a-f]{10}|\d{8}|\d{4}-\d\d-\d\d", re.ASCII | re.IGNORECASE)
_PREFIX = 8
_LONG_RUN = late(r"[0-9a-z]{16,}", re.ASCII | re.IGNORECASE)


class Thread(NamedTuple):
    """The identity of a thread: a project, else a lineage (a key that several sessions share), else one session.

    `key` is Signet's form `project:…` or `source:…`, or `session:…`, with `%` and `#` percent-encoded; `id` is `t-…`,
    derived from the agent and this identity; `label` is one short flattened line for people. `project` is a project's
    identity (`graph.nodes`).
    """

    agent_id: str
    id: str
    key: str
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

    `sample` is the sentence of the newest session, `node_id` its node. `harness` lists the harnesses of the newest
    sessions, the latest used first.
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
    source_ref: str
    sample: str


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
    identity = best.identity
    lineage = "" if identity else lineage_of(best.session_key, best.session_id) or ""
    name = ("project", identity) if identity else ("source", lineage)
    if not name[1]:
        name = "session", best.session_id
    return Thread(
        best.agent_id,
        id_of("t", best.agent_id, *name, *(() if name[0] != "session" else (best.session_token,))),
        f"{name[0]}:{name[1].replace('%', '%25').replace('#', '%23')}",
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
    derived: str | None = None,
    telling: ArtifactText | None = None,
    status: digest_mark.Status | None = None,
) -> ThreadSession:
    """Returns a session's row in its thread; `sources` are its artifacts (at least one), `items` theirs by path.

    Sentence and status are those of `telling` if it is given, else of the best artifact; a sentence that was `derived`
    is better, and so is a `status` that was.
    """
    best = next(node for node in session_nodes.nodes if node.id == session_nodes.best)
    lead = next(source for source in sources if source.source_path == best.source_ref)
    newest = max(sources, key=lambda source: (source.membership_us, source.source_path))
    latest = newest.membership_us
    telling = telling or lead
    return ThreadSession(
        best.agent_id,
        sources[0].session_token,
        sources[0].session_id,
        thread.id,
        min(span_of(source)[0] for source in sources),
        latest,
        week_of(latest),
        best.id,
        best.source_ref or "",
        flatten(derived or telling.sentence) or NO_WORDS,
        status or digest_mark.status_of(telling.content) or _status_of_lists(items),
        flatten_cell(js_trim(lead.harness or ""), _HARNESS_LENGTH) or None,
        newest.branch,
        newest.tree,
    )


def _status_of_lists(items: Mapping[str, Sequence[Item]]) -> Literal["blocked", "open"] | None:
    """Returns how a session ended by what its artifacts list as open; None if they list nothing."""
    kinds = {item.kind for some in items.values() for item in some if not item.done}
    if "blocker" in kinds:
        return "blocked"
    return "open" if kinds & {"next", "question"} else None


# ── the summary ──


def newest_first(sessions: Iterable[ThreadSession]) -> list[ThreadSession]:
    """Sorts sessions of one agent by time, newest first, ties by token and id."""
    return sorted(sessions, key=lambda s: (-s.latest_us, s.session_token, s.session_id))


def summarize(thread: Thread, newest: Sequence[ThreadSession], sessions: int, earliest_us: int) -> ThreadSummary:
    """Summarizes a thread from its newest sessions (at least one; at most `SUMMARY_SESSIONS` are used).

    `sessions` is how many there are in all, `earliest_us` when the first began.
    """
    counted = newest_first(newest)[:SUMMARY_SESSIONS]
    latest = counted[0]
    return ThreadSummary(
        thread.agent_id,
        thread.id,
        thread.key,
        thread.label,
        thread.project,
        thread.lineage,
        ", ".join([*dict.fromkeys(session.harness for session in counted if session.harness)][:HARNESSES]) or None,
        latest.status or "settled",
        sessions,
        min(earliest_us, latest.earliest_us),
        latest.latest_us,
        latest.node_id,
        latest.source_ref,
        latest.sentence,
    )
