"""The texts of some sessions, and those of all others: what tells the one from the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from signet_sync.index import memories
from signet_sync.index.database import Database
from signet_sync.reconcile import Seal, unpack

Scope = tuple[str, str, tuple[str, ...]]  # agent, token, session ids; no ids: every session of the token


def _within(scope: Scope) -> tuple[str, list[str]]:
    agent_id, token, ids = scope
    some = f" and session_id in ({', '.join('?' * len(ids))})" if ids else ""
    return f"agent_id = ? and session_token = ?{some}", [agent_id, token, *ids]


def texts(database: Database, scope: Scope) -> Iterator[str]:
    """Bodies and sentences of the sessions of a scope, and what is remembered of them alone.

    Of files that have vanished, what was sealed of them.
    """
    where, bindings = _within(scope)
    for content, sentence in database.execute(
        f"select content, memory_sentence from memory_artifacts where {where}", bindings
    ):
        yield content
        yield sentence or ""
    for row in database.execute(
        f"select * from seals where {where} and path not in (select source_path from memory_artifacts)", bindings
    ):
        yield (unpack(Seal(*row)) or b"").decode("utf-8", "replace")
    for memory in memories.from_these_alone(database, *scope):
        yield memory.content


def names(database: Database, scope: Scope) -> set[str]:
    """Ids of the sessions of a scope, and the names of their files."""
    where, bindings = _within(scope)
    found = set()
    for path, session_id in database.execute(
        f"select source_path, session_id from memory_artifacts where {where}"
        f" union select path, session_id from seals where {where}",
        [*bindings, *bindings],
    ):
        found |= {path.rpartition("/")[2], session_id}
    return found


def other_texts(database: Database, scopes: Sequence[Scope]) -> Iterator[str]:
    """Bodies and sentences of every session, of any agent, outside some scopes, and what else is remembered."""
    clauses, bindings = [], []
    for scope in scopes:
        where, values = _within(scope)
        clauses.append(f"not ({where})")
        bindings += values
    for content, sentence in database.execute(
        f"select content, memory_sentence from memory_artifacts where {' and '.join(clauses) or '1'}", bindings
    ):
        yield content
        yield sentence or ""
    gone = {memory[:2] for scope in scopes for memory in memories.from_these_alone(database, *scope)}
    for agent_id, memory_id, content in database.execute("select agent_id, id, content from memories"):
        if (agent_id, memory_id) not in gone:
            yield content
