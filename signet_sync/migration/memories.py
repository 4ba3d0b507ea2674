"""Brings statements as memories: each once by what it is in the other program, and never one that was forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from signet_sync.formats.timestamps import iso
from signet_sync.memories.store import memories, pins
from signet_sync.memories.store.memories import Memory, Origin
from signet_sync.migration import store
from signet_sync.migration.signet_rows import FORGOTTEN_HERE, Left, Statement, mark_of
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.sync.workspace import Workspace
from signet_sync.text import tags as text_tags
from signet_sync.text.memory import TYPES, memory_id

BATCH = 500


class _Waiting(NamedTuple):
    """A thing whose words came or changed: its new memories, those with its former words, those of others."""

    mark: str
    origin: Origin
    pinned: bool
    new: Sequence[Memory]
    outdated: Collection[tuple[str, str]]
    same: Collection[tuple[str, str]]


@dataclass(slots=True)
class Source:
    """What a statement is in the other program: its kind and id there, and the session here that it comes from."""

    kind: str
    id: str
    origin: Origin = store.SIGNET
    pinned: bool = False


class MemoryBringer:
    """Brings statements in batches; without `write` it only decides, as if each had been brought."""

    def __init__(self, workspace: Workspace, now_us: int, *, write: bool) -> None:
        self.workspace = workspace
        self.now_us = now_us
        self.write = write
        self.redactions = Counter[str]()
        self.agents: set[str] = set()
        self.pins = 0
        self.reworded = 0
        self._met = Counter[str]()
        self._decided: set[tuple[str, str]] = set()
        self._waiting: list[_Waiting] = []

    def bring(self, statement: Statement, source: Source) -> bool:
        """Brings a statement, unless its words are here; returns whether. Raises `Left`.

        What was brought before and is worded otherwise now takes the place of its former words.
        """
        database = self.workspace.database
        # Another row with the same id is another thing.
        self._met[mark_of(source.kind, source.id)] += 1
        number = self._met[mark_of(source.kind, source.id)]
        mark = mark_of(source.kind, source.id if number == 1 else f"{source.id}#{number}")
        said = {memory[:2]: memory for memory in self._memories(statement)}
        before = store.brought_as(database, mark)
        new = [memory for key, memory in said.items() if not self._is_here(key)]
        outdated, same = before - said.keys(), said.keys() - before - {memory[:2] for memory in new}
        if not (new or outdated or same):
            return False
        gone = memories.once_forgotten(database, statement.agent_id, [memory.id for memory in new])
        new = [memory for memory in new if memory.id not in gone]
        if store.is_forgotten(database, mark) or (gone and not new):
            if before - outdated or same:
                return False
            raise Left(FORGOTTEN_HERE)
        if self.write:
            pinned = any(pins.is_pinned(database, *one) for one in outdated) if before else source.pinned
            self._waiting.append(_Waiting(mark, source.origin, pinned, new, outdated, same))
            if len(self._waiting) >= BATCH:
                self.flush()
        self._decided.update(memory[:2] for memory in new)
        self.redactions.update(statement.redactions if new else ())
        self.pins += source.pinned and bool(new) and not before
        self.reworded += bool(outdated)
        return bool(new)

    def was_brought(self, kind: str, source_id: str) -> bool:
        """Returns whether a thing was brought by an earlier run."""
        return bool(store.brought_as(self.workspace.database, mark_of(kind, source_id)))

    def flush(self) -> None:
        """Writes what waits, in one transaction with the notes by which it can be taken back."""
        if not self._waiting:
            return
        database, at = self.workspace.database, iso(self.now_us)
        with state_dir.workspace_lock(self.workspace.state), database.transaction(durable=True):
            for one in self._waiting:
                for memory in one.new:
                    self._store(memory, one, at)
            for one in self._waiting:
                for agent_id, memory_id in one.same:
                    store.add_same(database, agent_id, memory_id, one.mark, at)
            for one in self._waiting:
                for agent_id, memory_id in one.outdated:
                    if store.release(database, agent_id, memory_id, one.mark):
                        drop(database, agent_id, [memory_id], program_of(one.origin))
                        self.agents.add(agent_id)
        self._waiting.clear()
        self._decided.clear()

    def _store(self, memory: Memory, waiting: _Waiting, at: str) -> None:
        database = self.workspace.database
        if memories.get(database, memory.agent_id, memory.id) is not None:
            return  # a person remembered the same meanwhile: it is theirs
        memories.store(database, memory._replace(concepts=text_tags.derive(memory.content)), waiting.origin)
        store.add_memory(database, memory.agent_id, memory.id, waiting.mark, at)
        if waiting.pinned:
            pins.pin(database, memory.agent_id, memory.id, at)
        self.agents.add(memory.agent_id)

    def _memories(self, said: Statement) -> list[Memory]:
        return [
            Memory(
                said.agent_id,
                memory_id(said.agent_id, kind, part),
                kind,
                part,
                said.tags,
                said.private,
                said.created_at,
            )
            for part in dict.fromkeys(said.parts)
            for kind in [self._kind(said, part)]
        ]

    def _kind(self, said: Statement, part: str) -> str:
        """Returns the type of a memory: words of none are those of a memory with a type that is here."""
        agent_id = said.agent_id
        alike = ("note", *TYPES) if said.kind == "note" else ()
        return next((kind for kind in alike if self._is_here((agent_id, memory_id(agent_id, kind, part)))), said.kind)

    def _is_here(self, key: tuple[str, str]) -> bool:
        return key in self._decided or memories.get(self.workspace.database, *key) is not None


def program_of(origin: Origin) -> str:
    """Returns the program that a memory comes from: one from a session that is here comes from Signet."""
    token, name = origin
    return store.SIGNET[1] if token else name


def drop(database: Database, agent_id: str, ids: Sequence[str], program: str) -> None:
    """Drops memories that were brought, unless a person or a session has said the same since. In a transaction.

    Brought again, they are no memories that a person has forgotten.
    """
    staying = {one for one in ids if store.others_say_it(database, agent_id, one, program)}
    gone = [one for one in ids if one not in staying and memories.get(database, agent_id, one) is not None]
    for one in ids:
        store.forget_source(database, agent_id, one, program)
    store.forget_memories(database, agent_id, ids)
    memories.forget(database, agent_id, gone)
    # A backup may name memories that were forgotten here: their marks stay.
    memories.forget_marks_of(database, [(agent_id, one) for one in gone])
