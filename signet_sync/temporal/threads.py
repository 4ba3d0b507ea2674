"""Threads: sessions of one agent that go on from each other, and the rolling head of each."""

from __future__ import annotations

from typing import Literal, NamedTuple

Status = Literal["blocked", "open", "settled"]


class Thread(NamedTuple):
    """What makes sessions one thread: project, lineage (a key that several sessions share) and harness.

    `key` is Signet's form `project:…#source:…#harness:…`, parts that are missing left out, `%` and `#` inside a part
    percent-encoded; `id` is `t-…` of agent and these parts; `label` is one short flattened line for people.
    """

    agent_id: str
    id: str
    key: str
    label: str
    project: str | None
    lineage: str | None
    harness: str | None


class ThreadSession(NamedTuple):
    """One session as its thread needs it; a row of `thread_sessions`. Texts are flattened lines, most important first.

    `loops` are open items: next steps and open questions; `closed` are such items that the session says are done,
    casefolded. `week` is the ISO week (`2026-W13`) of `latest_us` in UTC.
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
    decisions: tuple[str, ...]
    next_steps: tuple[str, ...]
    loops: tuple[str, ...]
    blockers: tuple[str, ...]
    closed: tuple[str, ...]


class ThreadHead(NamedTuple):
    """The rolling head of a thread; a row of `memory_thread_heads`.

    `sample` is the sentence of the newest session, `node_id` its node, `refs` the ids behind it (newest sessions, the
    newest arc), newest first.
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
