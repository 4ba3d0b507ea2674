"""Stores memories, with their sources and marks of forgotten ones, native rows; reads what is pinned."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from signet_sync.formats.ids import hash_forgotten
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import parse_instant
from signet_sync.storage.database import batches
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import list_of_memories
from signet_sync.sync.store import texts
from signet_sync.sync.store.texts import Line
from signet_sync.text.index_words import space_dense

Origin = tuple[str, str]  # token and id of a session
OWN_WORD: Origin = ("", "")
_COLUMNS = "agent_id, id, type, content, tags, private, created_at, concept_tags, project"
_WORD = late(r"[^\W_]+")


class Memory(NamedTuple):
    """A row of `memories`. `content` is sanitized, `tags` are sorted, `created_at` is ISO 8601 UTC.

    `concepts` are tags derived from the content. `project` is "" for all projects.
    """

    agent_id: str
    id: str
    type: str
    content: str
    tags: tuple[str, ...]
    private: bool
    created_at: str
    concepts: tuple[str, ...] = ()
    project: str = ""


def store(database: Database, memory: Memory, origin: Origin, *, indexed: bool = True) -> tuple[Memory, bool]:
    """Stores a memory from a session or a person; returns the stored row, and whether it is new.

    For equal content, tags and sources are added to the existing row, and a private one stays private; one of two
    projects is for all. One that is not
    `indexed` is found only after `index`. In the caller's transaction.
    """
    before = get(database, memory.agent_id, memory.id)
    row = memory if before is None else _merge(before, memory)
    if row != before:
        database.execute(
            f"insert or replace into memories({_COLUMNS}) values(?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*row[:4], _pack_tags(row.tags), int(row.private), row.created_at, _pack_tags(row.concepts), row.project),
        )
    database.execute(
        "insert or ignore into memory_sources(agent_id, memory_id, session_token, session_id, at)"
        " values(?, ?, ?, ?, ?)",
        (memory.agent_id, memory.id, *origin, memory.created_at),
    )
    forget_marks_of(database, [(memory.agent_id, memory.id)])
    if indexed:
        index(database, [row])
    return row, before is None


def index(database: Database, rows: Iterable[Memory]) -> None:
    """Has `recall` find memories. In the caller's transaction."""
    texts.put(database, map(_line, rows))


def _merge(before: Memory, more: Memory) -> Memory:
    tags = tuple(sorted({*before.tags, *more.tags}))
    project = before.project if before.project == more.project else ""
    private, concepts = before.private or more.private, more.concepts or before.concepts
    return before._replace(tags=tags, private=private, concepts=concepts, project=project)


def _pack_tags(tags: Sequence[str]) -> str:
    return json.dumps(tags, ensure_ascii=False)


def get(database: Database, agent_id: str, memory_id: str) -> Memory | None:
    return next(_memories(database, "agent_id = ? and id = ?", (agent_id, memory_id)), None)


def ids(database: Database) -> list[tuple[str, str]]:
    return list(database.execute("select agent_id, id from memories"))


def lines(database: Database, agent_id: str | None = None, some: Iterable[str] = ()) -> list[Line]:
    """Returns the lines by which `recall` finds memories: of all agents, or `some` of one agent."""
    if agent_id is None:
        return [_line(memory) for memory in _memories(database, "1", ())]
    found = (get(database, agent_id, memory_id) for memory_id in some)
    return [_line(memory) for memory in found if memory is not None]


def _line(memory: Memory) -> Line:
    """Makes a memory's line of its words, and below them the tags that they do not contain."""
    has = f" {_words(memory.content)} "
    tags = dict.fromkeys((*memory.tags, *memory.concepts))
    more = " ".join(tag for tag in tags if f" {_words(tag)} " not in has)
    words = f"{memory.content}\n{more}" if more else memory.content
    at_us = parse_instant(memory.created_at) or 0
    return Line(memory.agent_id, "memory", memory.id, words, at_us, memory.private, memory.project)


def _words(text: str) -> str:
    """Splits a text as full-text search does: `chatgpt` does not contain `gpt`, `网络很慢` contains `网络`."""
    return " ".join(_WORD.findall(space_dense(text).casefold()))


def _memories(database: Database, where: str, bindings: Sequence[Any]) -> Iterator[Memory]:
    for agent_id, memory_id, kind, content, tags, private, created_at, concepts, project in database.execute(
        f"select {_COLUMNS} from memories where {where} order by agent_id, id", bindings
    ):
        held, made = tuple(json.loads(tags)), tuple(json.loads(concepts or "[]"))
        yield Memory(agent_id, memory_id, kind, content, held, bool(private), created_at, made, project)


# ── forgetting ──


def drop(database: Database, agent_id: str, ids: Sequence[str]) -> None:
    """Deletes memories with their sources, lines, accesses, hits and promotions. In the caller's transaction."""
    batches.drop_ids(database, [(agent_id, memory_id) for memory_id in ids], *list_of_memories())
    texts.drop(database, agent_id, ids)


def forget(database: Database, agent_id: str, ids: Sequence[str]) -> None:
    """Deletes memories, and marks them for the scrub: they stay away. In the caller's transaction."""
    if not ids:
        return
    drop(database, agent_id, ids)
    marks = [(hash_forgotten(agent_id, memory_id),) for memory_id in ids]
    database.executemany("insert or ignore into forgotten_memories(mark) values(?)", marks)
    scrub_again(database, agent_id, ids)


def forget_session(database: Database, agent_id: str, token: str, ids: Sequence[str]) -> int:
    """Forgets memories that come only from removed sessions of a token (no ids: all of them); returns their number.

    Memories with another session or a person as a source are kept. In the caller's transaction.
    """
    where, bindings = batches.make_condition((agent_id, token, tuple(ids)))
    gone = find_orphans(database, agent_id, token, ids)
    forget(database, agent_id, [memory.id for memory in gone])
    database.execute(f"delete from memory_sources where {where}", bindings)
    return len(gone)


def find_orphans(database: Database, agent_id: str, token: str, ids: Sequence[str]) -> list[Memory]:
    """Returns memories whose only sources are sessions of a token (no ids: all of them)."""
    where, bindings = batches.make_condition((agent_id, token, tuple(ids)))
    wanted = (
        f"(agent_id, id) in (select agent_id, memory_id from memory_sources where {where})"
        " and not exists(select 1 from memory_sources s where s.agent_id = memories.agent_id"
        f" and s.memory_id = memories.id and not ({where}))"
    )
    return list(_memories(database, wanted, [*bindings, *bindings]))


def list_unscrubbed(database: Database) -> list[tuple[str, str]]:
    """Lists agent and id of forgotten memories of which bytes may remain in our files."""
    return list(database.execute("select agent_id, memory_id from unscrubbed_memories"))


def scrub_again(database: Database, agent_id: str, ids: Iterable[str]) -> None:
    """Notes forgotten memories that came back in a file. In the caller's transaction."""
    rows = [(agent_id, one) for one in sorted(ids)]
    database.executemany("insert or ignore into unscrubbed_memories(agent_id, memory_id) values(?, ?)", rows)


def find_forgotten(database: Database, agent_id: str, ids: Iterable[str]) -> frozenset[str]:
    """Returns those of an agent's memories that were ever forgotten and not remembered again."""
    marked = "select exists(select 1 from forgotten_memories where mark = ?)"
    return frozenset(one for one in ids if database.value(marked, (hash_forgotten(agent_id, one),)))


def forget_marks_of(database: Database, remembered: Iterable[tuple[str, str]]) -> None:
    """Deletes the marks of memories (agent, id) that are remembered again. In the caller's transaction."""
    marks = [(hash_forgotten(*one),) for one in remembered]
    database.executemany("delete from forgotten_memories where mark = ?", marks)


# ── pins ──


def is_pinned(database: Database, agent_id: str, node_id: str) -> bool:
    pinned = "select exists(select 1 from pins where agent_id = ? and id = ?)"
    return bool(database.value(pinned, (agent_id, node_id)))


def list_pinned(database: Database, agent_id: str) -> dict[str, str]:
    """Returns what an agent pinned, with the time (ISO 8601 UTC); the newest first."""
    sql = "select id, pinned_at from pins where agent_id = ? order by pinned_at desc, id"
    return dict(database.execute(sql, (agent_id,)))
