"""Brings statements as memories: each once by what it is in the other program, and never one that was forgotten."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from signet_sync.formats.timestamps import iso
from signet_sync.memories.store import memories, pins
from signet_sync.memories.store.memories import Memory, Origin
from signet_sync.migration import store
from signet_sync.migration.signet_rows import FORGOTTEN_HERE, Left, Statement, mark_of
from signet_sync.storage import state_dir
from signet_sync.sync.workspace import Workspace
from signet_sync.text import tags as text_tags
from signet_sync.text.memory import memory_id

BATCH = 500


class _Waiting(NamedTuple):
    memory: Memory
    origin: Origin
    mark: str
    pinned: bool


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
        self._marks: Collection[str] = store.marks(workspace.database)
        self._met = Counter[str]()
        self._decided: set[tuple[str, str]] = set()
        self._waiting: list[_Waiting] = []

    def bring(self, statement: Statement, source: Source) -> bool:
        """Brings a statement, unless its words are here or it was brought before; returns whether. Raises `Left`."""
        # Another row with the same id is another thing.
        self._met[mark_of(source.kind, source.id)] += 1
        number = self._met[mark_of(source.kind, source.id)]
        mark = mark_of(source.kind, source.id if number == 1 else f"{source.id}#{number}")
        if mark in self._marks:
            return False
        new = [memory for memory in self._memories(statement) if not self._is_here(memory)]
        if not new:
            return False
        forgotten = memories.once_forgotten(self.workspace.database, statement.agent_id, [one.id for one in new])
        new = [memory for memory in new if memory.id not in forgotten]
        if not new:
            raise Left(FORGOTTEN_HERE)
        self._decided.update(memory[:2] for memory in new)
        self.redactions.update(statement.redactions)
        self.pins += source.pinned
        if self.write:
            self._waiting += [_Waiting(memory, source.origin, mark, source.pinned) for memory in new]
            if len(self._waiting) >= BATCH:
                self.flush()
        return True

    def was_brought(self, kind: str, source_id: str) -> bool:
        """Returns whether a thing was brought by an earlier run."""
        return mark_of(kind, source_id) in self._marks

    def flush(self) -> None:
        """Writes the statements that wait, in one transaction with the notes by which they can be taken back."""
        database, at = self.workspace.database, iso(self.now_us)
        with state_dir.workspace_lock(self.workspace.state), database.transaction(durable=True):
            for memory, origin, mark, pinned in self._waiting:
                if memories.get(database, memory.agent_id, memory.id) is not None:
                    continue  # a person remembered the same meanwhile: it is theirs
                tagged = memory._replace(concepts=text_tags.derive(memory.content))
                memories.store(database, tagged, origin)
                store.add_memory(database, memory.agent_id, memory.id, mark, at)
                if pinned:
                    pins.pin(database, memory.agent_id, memory.id, at)
                self.agents.add(memory.agent_id)
        self._waiting.clear()

    def _memories(self, said: Statement) -> list[Memory]:
        return [
            Memory(
                said.agent_id,
                memory_id(said.agent_id, said.kind, part),
                said.kind,
                part,
                said.tags,
                said.private,
                said.created_at,
            )
            for part in dict.fromkeys(said.parts)
        ]

    def _is_here(self, memory: Memory) -> bool:
        key = memory[:2]
        return key in self._decided or memories.get(self.workspace.database, *key) is not None
