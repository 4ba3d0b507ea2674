"""Reads the sessions of threads along time: how many, when, and the node that represents each.

Counts come from an index; rows are read for a few threads only. Imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from signet_sync.graph.threads import Status
from signet_sync.storage.database.connection import Database


class Extent(NamedTuple):
    """How many sessions there are, and when the first and the last of them ended (0 if there is none)."""

    sessions: int
    earliest_us: int
    latest_us: int


class ThreadState(NamedTuple):
    """A thread's label, status and next action."""

    thread_id: str
    label: str
    status: Status
    sessions: int
    latest_us: int
    next_action: str | None


class Condensation(NamedTuple):
    """An arc or epoch: its id, when the last of its sessions ended, its label."""

    id: str
    latest_us: int
    label: str


class TimelineSession(NamedTuple):
    """A session on the timeline: when it ended, the node that represents it and that node's type, its sentence."""

    latest_us: int
    node_id: str
    source_type: str
    sentence: str
    session_token: str
    session_id: str


_SPOT = ", ".join(TimelineSession._fields)
_OF_THREAD = "agent_id = ? and thread_id = ?"
_ALWAYS = (-(1 << 63), (1 << 63) - 1)


def extent(database: Database, agent_id: str, thread_id: str | None = None) -> Extent:
    """Returns how many sessions an agent or one of its threads has, and from when to when."""
    where, bindings = _where(agent_id, thread_id, _ALWAYS)
    for sessions, earliest, latest in database.execute(
        f"select count(*), min(latest_us), max(latest_us) from thread_sessions where {where}", bindings
    ):
        return Extent(sessions, earliest or 0, latest or 0)
    return Extent(0, 0, 0)


def activity(database: Database, agent_id: str, first_us: int, last_us: int) -> list[tuple[str, int, int]]:
    """Returns threads with sessions between two instants: how many, when the last of these ended; busiest first."""
    where, bindings = _where(agent_id, None, (first_us, last_us))
    return list(
        database.execute(
            f"select thread_id, count(*), max(latest_us) from thread_sessions where {where}"
            " group by thread_id order by 2 desc, 3 desc, 1",
            bindings,
        )
    )


def counts(
    database: Database, agent_id: str, thread_id: str | None, first_us: int, last_us: int, slot_us: int
) -> dict[int, int]:
    """Counts the sessions in slots of `slot_us` microseconds from the first instant; empty slots are left out."""
    where, bindings = _where(agent_id, thread_id, (first_us, last_us))
    return dict(
        database.execute(
            f"select (latest_us - ?) / ?, count(*) from thread_sessions where {where} group by 1",
            (first_us, slot_us, *bindings),
        )
    )


def sessions_between(
    database: Database,
    agent_id: str,
    thread_id: str,
    first_us: int,
    last_us: int,
    *,
    limit: int,
    skip: int = 0,
) -> list[TimelineSession]:
    """Returns the sessions of a thread between two instants, newest first."""
    return [
        TimelineSession(*row)
        for row in database.execute(
            f"select {_SPOT} from thread_sessions where {_OF_THREAD} and latest_us between ? and ?"
            " order by latest_us desc, session_token, session_id limit ? offset ?",
            (agent_id, thread_id, first_us, last_us, limit, skip),
        )
    ]


def alone_in_week(
    database: Database, agent_id: str, thread_id: str, first_week: str, last_week: str
) -> list[TimelineSession]:
    """Returns the sessions of a thread that are the only ones of their week, between two ISO weeks."""
    of_thread = f"{_OF_THREAD} and week between ? and ?"
    return [
        TimelineSession(*row)
        for row in database.execute(
            f"select {_SPOT} from thread_sessions where {of_thread} and week in (select week from thread_sessions"
            f" where {of_thread} group by week having count(*) = 1)",
            (agent_id, thread_id, first_week, last_week) * 2,
        )
    ]


def condensations(
    database: Database, agent_id: str, thread_id: str, depth: int, first_us: int, last_us: int
) -> list[Condensation]:
    """Returns a thread's arcs (depth 1) or epochs (2) whose last session ended between two instants, oldest first."""
    return [
        Condensation(*row)
        for row in database.execute(
            f"select id, latest_us, label from session_summaries where {_OF_THREAD} and depth = ?"
            " and latest_us between ? and ? order by latest_us, id",
            (agent_id, thread_id, depth, first_us, last_us),
        )
    ]


def states(database: Database, agent_id: str, thread_ids: Iterable[str]) -> dict[str, ThreadState]:
    """Returns the states of threads by id; one without a summary is left out."""
    return {
        thread_id: ThreadState(*row)
        for thread_id in thread_ids
        for row in database.execute(
            "select thread_id, label, status, sessions, latest_us, next_action from memory_thread_heads"
            f" where {_OF_THREAD}",
            (agent_id, thread_id),
        )
    }


def labels(database: Database, agent_id: str) -> dict[str, str]:
    """Returns the label of every thread of an agent and the harnesses it was continued in, by id."""
    labelled = "select thread_id, label || coalesce(' ' || harness, '') from memory_thread_heads where agent_id = ?"
    return dict(database.execute(labelled, (agent_id,)))


def _where(agent_id: str, thread_id: str | None, span: tuple[int, int]) -> tuple[str, tuple[Any, ...]]:
    if thread_id is None:
        return "agent_id = ? and latest_us between ? and ?", (agent_id, *span)
    return f"{_OF_THREAD} and latest_us between ? and ?", (agent_id, thread_id, *span)
