"""Lists what sessions, handles and other things of one agent are called. Imports no slow module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from signet_sync.entities import store as entities_store
from signet_sync.recall.store import session_list
from signet_sync.recall.store.session_list import SessionFilter
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import counts, violations

MOST = 5_000  # of one kind, the newest first; of handles those that begin with the word


class Name(NamedTuple):
    """A name that a command accepts, what it stands for in words, and its other names."""

    value: str
    about: str
    others: tuple[str, ...] = ()


def _sessions(database: Database, agent_id: str, start: str) -> Iterator[Name]:
    for one in session_list.page(database, agent_id, SessionFilter(), limit=MOST).entries:
        others = tuple(filter(None, (one.session_id, one.session_key)))
        yield Name(one.session_token, f"{one.day} {one.sentence}", others)


def _handles(database: Database, agent_id: str, start: str) -> Iterator[Name]:
    for handle, text in database.execute(
        # `{` sorts directly after `z`, the last letter of an id.
        "select id, text from recall_lines where agent_id = ?1 and id >= ?2 and id < ?2 || '{' order by id limit ?3",
        (agent_id, start, MOST),
    ):
        yield Name(handle, text)


def _memories(database: Database, agent_id: str, start: str) -> Iterator[Name]:
    for handle, text in database.execute(
        "select id, content from memories where agent_id = ? order by created_at desc limit ?", (agent_id, MOST)
    ):
        yield Name(handle, text)


def _entities(database: Database, agent_id: str, start: str) -> Iterator[Name]:
    for one in entities_store.entities(database, agent_id):
        yield Name(one.id, one.title, (one.title, one.slug))


def _projects(database: Database, agent_id: str, start: str) -> Iterator[Name]:
    for thread, label, project in database.execute(
        "select thread_id, label, project from memory_thread_heads where agent_id = ? order by latest_us desc limit ?",
        (agent_id, MOST),
    ):
        yield Name(thread, label, tuple(filter(None, (label, project))))


def _agents(database: Database, agent_id: str, start: str) -> Iterator[Name]:
    for agent in counts.agents(database):
        yield Name(agent, "")


def _violations(database: Database, agent_id: str, start: str) -> Iterator[Name]:
    for batch in violations.batches(database, agent_id):
        for one in batch.files:
            yield Name(one.path, one.message)


_KINDS: Mapping[str, Callable[[Database, str, str], Iterator[Name]]] = {
    "session": _sessions,
    "handle": _handles,
    "memory": _memories,
    "entity": _entities,
    "project": _projects,
    "agent": _agents,
    "violation": _violations,
}


def names(database: Database, agent_id: str, kind: str, start: str = "") -> Iterator[Name]:
    """Yields the names of a kind, of one agent; `start` is the beginning of a handle without `^`.

    Kinds: session, handle, memory, entity, project (a thread of sessions), violation; agent, which lists all agents.
    """
    return _KINDS[kind](database, agent_id, start)
