"""Keeps the statements that `recall` finds equal to their sources: memories, what sessions state, entities."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from signet_sync.entities import store as entities_store
from signet_sync.graph.stage import STATEMENT, Statements
from signet_sync.memories.store import memories
from signet_sync.statements import store as statements_store
from signet_sync.storage.database.connection import Database
from signet_sync.sync.index_records import Change, Source
from signet_sync.sync.store import texts
from signet_sync.sync.store.texts import Line
from signet_sync.sync.workspace import Alive, Deriver

# Kinds of sources that operations change: memories and entities.
MEMORY, ENTITY = "memory", "entity"


_LINES: dict[str, Callable[[Database, str, list[str]], list[Line]]] = {
    STATEMENT: statements_store.lines, MEMORY: memories.lines, ENTITY: entities_store.lines
}  # fmt: skip


class FoundStatements(Deriver):
    """Derives one line for each memory, statement and entity profile."""

    name = "found statements"
    tables = ()
    kinds = frozenset({STATEMENT, MEMORY, ENTITY})
    after = (Statements.name, statements_store.LIVE)
    batch = 5000
    waits = False  # a statement moves once, as a rule, and to wait would cost it two rows more

    def sources(self, database: Database) -> Iterable[Source]:
        for kind, ids in (
            (STATEMENT, statements_store.open_ids(database)),
            (MEMORY, memories.ids(database)),
            (ENTITY, entities_store.ids(database)),
        ):
            yield from (Source(kind, *key) for key in ids)

    def clear(self, database: Database) -> None:
        texts.clear_lines(database)

    def update(self, database: Database, prepared: Sequence[Source], alive: Alive) -> Change:
        """Writes the lines that changed, and deletes those whose source is gone."""
        lines: list[Line] = []
        for (kind, agent_id), some in groupby(sorted(prepared), key=lambda one: one[:2]):
            ids = [one.id for one in some]
            found = _LINES[kind](database, agent_id, ids)
            texts.drop(database, agent_id, sorted(set(ids).difference(line.id for line in found)))
            lines += found
        texts.put(database, lines)
        return Change()
