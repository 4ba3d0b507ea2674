"""Stores what was brought, so that it comes once and can be taken back; finds sessions that are here already."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from signet_sync.formats.session_token import token_of
from signet_sync.memories.store.memories import Origin
from signet_sync.storage.database import removal
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store.sessions import SessionRef

# Where a memory comes from that no session here said, and no person.
SIGNET: Origin = ("", "signet")


class BroughtFile(NamedTuple):
    """A file that was brought, or a manifest that was there and changed: `before` are fields that it had until then."""

    agent_id: str
    path: str
    before: dict[str, Any] | None


def brought_as(database: Database, mark: str) -> set[tuple[str, str]]:
    """Returns agent and id of the memories that have the words of a thing, as they were when it was last brought."""
    return set(database.execute("select agent_id, memory_id from migrated_memories where mark = ?", (mark,)))


def is_forgotten(database: Database, mark: str) -> bool:
    """Returns whether a person forgot what was brought of a thing."""
    return bool(database.value("select exists(select 1 from forgotten_memories where mark = ?)", (mark,)))


def add_memory(database: Database, agent_id: str, memory_id: str, mark: str, at: str) -> None:
    """Notes a memory that is brought. In the caller's transaction."""
    database.execute(
        "insert or ignore into migrated_memories(agent_id, memory_id, mark, at) values(?, ?, ?, ?)",
        (agent_id, memory_id, mark, at),
    )


def add_same(database: Database, agent_id: str, memory_id: str, mark: str, at: str) -> None:
    """Notes that another thing has the words of a memory that was brought. In the caller's transaction."""
    database.execute(
        "insert or ignore into migrated_memories(agent_id, memory_id, mark, at) select ?1, ?2, ?3, ?4"
        " where exists(select 1 from migrated_memories where agent_id = ?1 and memory_id = ?2)",
        (agent_id, memory_id, mark, at),
    )


def release(database: Database, agent_id: str, memory_id: str, mark: str) -> bool:
    """Notes that a thing has other words now; returns whether no other thing has these. In the caller's transaction."""
    where = "where agent_id = ? and memory_id = ?"
    database.execute(f"delete from migrated_memories {where} and mark = ?", (agent_id, memory_id, mark))
    return not database.value(f"select exists(select 1 from migrated_memories {where})", (agent_id, memory_id))


def brought_memories(database: Database, program: str = SIGNET[1]) -> dict[str, list[str]]:
    """Returns the memories that were brought from a program, by agent: those of Signet may come from sessions here."""
    found: dict[str, list[str]] = {}
    for agent_id, memory_id in database.execute(
        "select distinct agent_id, memory_id from migrated_memories m where coalesce((select session_id"
        " from memory_sources s where s.agent_id = m.agent_id and s.memory_id = m.memory_id and s.session_token = ''"
        " and s.session_id <> ''), ?) = ? order by 1, 2",
        (SIGNET[1], program),
    ):
        found.setdefault(agent_id, []).append(memory_id)
    return found


def others_say_it(database: Database, agent_id: str, memory_id: str, program: str = SIGNET[1]) -> bool:
    """Returns whether a memory that was brought has since been remembered by a person or a session as well."""
    others, brought = next(
        database.execute(
            "select sum((session_token, session_id) <> ('', ?1)), sum((session_token, session_id) = ('', ?1))"
            " from memory_sources where agent_id = ?2 and memory_id = ?3",
            (program, agent_id, memory_id),
        )
    )
    return (others or 0) > (0 if brought else 1)


def forget_source(database: Database, agent_id: str, memory_id: str, program: str = SIGNET[1]) -> None:
    """Forgets that a memory comes from another program. In the caller's transaction."""
    database.execute(
        "delete from memory_sources where agent_id = ? and memory_id = ? and session_token = '' and session_id = ?",
        (agent_id, memory_id, program),
    )


def forget_memories(database: Database, agent_id: str, ids: Iterable[str]) -> None:
    """Forgets that memories were brought. In the caller's transaction."""
    removal.drop_ids(database, [(agent_id, one) for one in ids], "migrated_memories")


def add_files(
    database: Database, agent_id: str, paths: Iterable[str], at: str, before: Mapping[str, Any] | None = None
) -> None:
    """Notes files that are about to be written. In the caller's transaction."""
    text = None if before is None else json.dumps(before, ensure_ascii=False)
    database.executemany(
        "insert or ignore into migrated_files(agent_id, path, before, at) values(?, ?, ?, ?)",
        [(agent_id, path, text, at) for path in paths],
    )


def take_manifest(database: Database, agent_id: str, path: str) -> None:
    """Notes that a manifest goes with what was brought, whatever it said before. In the caller's transaction."""
    at = database.value("select max(at) from migrated_files")
    database.execute(
        "insert or replace into migrated_files(agent_id, path, before, at) values(?, ?, null, ?)", (agent_id, path, at)
    )


def brought_files(database: Database) -> list[BroughtFile]:
    """Returns the files that were brought, by agent and path."""
    return [
        BroughtFile(agent_id, path, None if before is None else json.loads(before))
        for agent_id, path, before in database.execute(
            "select agent_id, path, before from migrated_files order by agent_id, path"
        )
    ]


def forget_files(database: Database, brought: Iterable[BroughtFile]) -> None:
    """Forgets that files were brought. In the caller's transaction."""
    for one in brought:
        removal.drop_artifacts(database, one.agent_id, [one.path], "migrated_files")


def forget_answers(database: Database, paths: Collection[str]) -> None:
    """Deletes the answers that name some files: asked again, they are written again. In the caller's transaction."""
    gone = set(paths)
    keys = [
        (agent_id, key)
        for agent_id, key, answer in list(database.execute("select agent_id, flow_key, answer from flow_results"))
        if not gone.isdisjoint(value for value in json.loads(answer).values() if isinstance(value, str))
    ]
    database.executemany("delete from flow_results where agent_id = ? and flow_key = ?", keys)


def sessions(database: Database) -> list[SessionRef]:
    """Returns every session of the index, the newest last."""
    return [
        SessionRef(*row)
        for row in database.execute(
            "select agent_id, session_token, session_id, max(session_key) from memory_artifacts group by 1, 2, 3"
            " order by max(captured_us), 2, 3"
        )
    ]


def identities(ref: SessionRef) -> set[tuple[str, str]]:
    """Returns agent and token of every identity of a session."""
    named = (token_of(ref.agent_id, name) for name in (ref.session_id, ref.session_key) if name)
    return {(ref.agent_id, token) for token in (ref.session_token, *named)}


def sessions_of(database: Database, paths: Collection[str]) -> list[tuple[str, str, str]]:
    """Returns the sessions (agent, token, id) of some artifacts, by their rows or, if these are gone, their seals."""
    named = (json.dumps(list(paths)),)
    return list(
        database.execute(
            "select distinct a.agent_id, a.session_token, a.session_id from json_each(?1) p"
            " cross join memory_artifacts a on a.source_path = p.value"
            " union select distinct s.agent_id, s.session_token, s.session_id from json_each(?1) p"
            " cross join seals s on s.path = p.value",
            named,
        )
    )
