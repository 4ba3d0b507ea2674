"""Writes what other programs remember as memories: each once, never one that was forgotten, after a backup."""

from __future__ import annotations

from signet_sync.backup import operations as backups
from signet_sync.formats.paths import AGENT_ID
from signet_sync.formats.statement import Word
from signet_sync.formats.timestamps import iso
from signet_sync.graph import words
from signet_sync.memories import operations as memories_operations
from signet_sync.memories.store import memories
from signet_sync.memories.store.memories import Memory
from signet_sync.migration.items import NO_AGENT, Item, Left, Report, own_tags, parts_of
from signet_sync.statements import word_files
from signet_sync.storage import state_dir
from signet_sync.sync.workspace import Workspace
from signet_sync.text import tags as text_tags
from signet_sync.text.memory import TYPES, memory_id

BATCH = 500


def back_up_once(workspace: Workspace, report: Report, now_us: int) -> None:
    """Writes a backup before the first thing is brought; one from before a removal would be cleaned by that."""
    if report.backup is None:
        report.backup = backups.create(workspace, None, now_us).path if workspace.own_place else ""
        report.notes += [] if report.backup else ["no backup was written: this database has no folder for one"]


class MemoryWriter:
    """Writes items in batches; without `write` it only decides, as if each had been brought."""

    def __init__(self, workspace: Workspace, report: Report, now_us: int, *, write: bool) -> None:
        self.workspace = workspace
        self.report = report
        self.now_us = now_us
        self.write = write
        self._agents: set[str] = set()
        # What is here, or was decided.
        self._here = set(memories.ids(workspace.database))
        self._waiting: list[tuple[Item, list[Memory]]] = []

    def bring(self, item: Item) -> bool:
        """Brings an item, unless its words are here; returns whether. Raises `Left`."""
        if item.left:
            raise Left(item.left)
        if AGENT_ID.fullmatch(item.agent_id) is None:
            raise Left(NO_AGENT)
        parts, redactions = parts_of(item.text)
        said = [self._memory(item, part) for part in parts]
        new = [memory for memory in said if memory[:2] not in self._here]
        if not new:
            return False
        gone = memories.once_forgotten(self.workspace.database, item.agent_id, [memory.id for memory in new])
        new = [memory for memory in new if memory.id not in gone]
        if not new:
            raise Left("forgotten here")
        self._here.update(memory[:2] for memory in new)
        self.report.redactions.update(redactions)
        if self.write:
            self._waiting.append((item, new))
            if len(self._waiting) >= BATCH:
                self.flush()
        return True

    def flush(self) -> None:
        """Writes what waits, in one transaction."""
        if not self._waiting:
            return
        back_up_once(self.workspace, self.report, self.now_us)
        database, at = self.workspace.database, iso(self.now_us)
        pinned = []
        with state_dir.workspace_lock(self.workspace.state), database.transaction(durable=True):
            stored = []
            for item, some in self._waiting:
                for memory in some:
                    if memories.get(database, *memory[:2]) is None:  # else a person said the same meanwhile
                        concepts = text_tags.derive(memory.content)
                        new = memories.store(database, memory._replace(concepts=concepts), item.origin, indexed=False)
                        stored.append(new[0])
                        if item.pinned:
                            pinned.append(Word(memory.agent_id, memory.id, "pinned", at))
                        self._agents.add(memory.agent_id)
            memories.index(database, stored)
            word_files.add(self.workspace, pinned)
            words.follow(self.workspace)
        self._waiting.clear()

    def finish(self) -> None:
        """Writes what waits, and updates pages and the automatic backup."""
        self.flush()
        for agent_id in sorted(self._agents):
            with state_dir.workspace_lock(self.workspace.state):
                memories_operations.first_pass(self.workspace, self.now_us)
                waiting = memories_operations.settle(self.workspace, agent_id, self.now_us)
            self.report.notes += [waiting] if waiting else []

    def _memory(self, item: Item, part: str) -> Memory:
        """Returns a memory; its type is that of a memory with the same words that is here."""
        agent_id = item.agent_id
        known = (kind for kind in TYPES if (agent_id, memory_id(agent_id, kind, part)) in self._here)
        kind = next(known, item.kind)
        handle = memory_id(agent_id, kind, part)
        return Memory(agent_id, handle, kind, part, own_tags(item.tags), item.private, iso(item.at_us))
