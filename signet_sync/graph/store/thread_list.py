"""Lists the threads of an agent, and the sessions of one, newest first. Imports nothing heavy."""

from collections.abc import Iterable
from typing import NamedTuple

from signet_sync.graph.threads import Status
from signet_sync.storage.database.connection import Database


class ThreadState(NamedTuple):
    """A thread's label, status and next action, its number of sessions, and when the last of them ended."""

    thread_id: str
    label: str
    status: Status
    sessions: int
    latest_us: int
    next_action: str | None


class SessionInThread(NamedTuple):
    """A session of a thread: when it ended, the node that represents it, its sentence."""

    latest_us: int
    node_id: str
    sentence: str


def labels(database: Database, agent_id: str) -> dict[str, str]:
    """Returns the label of every thread of an agent and the harnesses it was continued in, by id, newest first."""
    labelled = (
        "select thread_id, label || coalesce(' ' || harness, '') from memory_thread_heads where agent_id = ?"
        " order by latest_us desc, thread_id"
    )
    return dict(database.execute(labelled, (agent_id,)))


def states(database: Database, agent_id: str, thread_ids: Iterable[str]) -> dict[str, ThreadState]:
    """Returns the states of threads by id; one without a summary is left out."""
    return {
        thread_id: ThreadState(*row)
        for thread_id in thread_ids
        for row in database.execute(
            "select thread_id, label, status, sessions, latest_us, (select text from statements s"
            " where s.agent_id = h.agent_id and s.thread_id = h.thread_id and s.kind = 'next' and s.newest = 1"
            " and s.status = 'open' order by s.at_us desc, s.line, s.id limit 1) from memory_thread_heads h"
            " where agent_id = ? and thread_id = ?",
            (agent_id, thread_id),
        )
    }


def sessions(database: Database, agent_id: str, thread_id: str, limit: int, skip: int) -> list[SessionInThread]:
    """Returns a part of the sessions of a thread, newest first."""
    return [
        SessionInThread(*row)
        for row in database.execute(
            "select latest_us, node_id, sentence from thread_sessions where agent_id = ? and thread_id = ?"
            " order by latest_us desc, session_token, session_id limit ? offset ?",
            (agent_id, thread_id, limit, skip),
        )
    ]
