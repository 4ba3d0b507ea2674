"""Keeps the short texts that `recall` searches equal to their sources: memories, facts, threads, entities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from signet_sync.entities import store as entities_store
from signet_sync.facts.store import facts
from signet_sync.facts.store.live_sources import LIVE_FACTS
from signet_sync.graph.facts_stage import FACT, Facts
from signet_sync.graph.store import nodes
from signet_sync.graph.threads import ThreadSummary
from signet_sync.graph.threads_stage import NODE, THREAD, Threads
from signet_sync.memories.store import memories
from signet_sync.storage.database.connection import Database
from signet_sync.sync.stages import Alive, Change, Deriver, Source
from signet_sync.sync.store import line_index
from signet_sync.sync.store.line_index import Line

# Kinds of sources that operations change: memories and entities.
MEMORY, ENTITY = "memory", "entity"


class RecallLines(Deriver):
    """Derives one line for each memory, fact, thread summary, condensation and entity profile."""

    name = "recall lines"
    tables = ("recall_lines", "recall_lines_fts")
    kinds = frozenset({NODE, THREAD, FACT, MEMORY, ENTITY})
    after = (Threads.name, Facts.name, LIVE_FACTS)
    batch = 5000

    def sources(self, database: Database) -> Iterable[Source]:
        """Yields everything that has a line."""
        for kind, ids in (
            (NODE, nodes.condensations(database)),
            (THREAD, nodes.summaries(database)),
            (FACT, facts.active(database)),
            (MEMORY, memories.ids(database)),
            (ENTITY, entities_store.ids(database)),
        ):
            yield from (Source(kind, *key) for key in ids)

    def clear(self, database: Database) -> None:
        """Deletes every line."""
        line_index.clear(database)

    def update(self, database: Database, prepared: Sequence[Source], alive: Alive) -> Change:
        """Writes the lines that changed, and deletes those whose source is gone."""
        lines: list[Line] = []
        for (kind, agent_id), some in groupby(sorted(prepared), key=lambda one: one[:2]):
            ids = [one.id for one in some]
            found = _lines(database, kind, agent_id, ids)
            line_index.drop(database, agent_id, sorted(set(ids).difference(line.id for line in found)))
            lines += found
        line_index.put(database, lines)
        return Change()


def _lines(database: Database, kind: str, agent_id: str, ids: Sequence[str]) -> list[Line]:
    if kind == FACT:
        return facts.lines(database, agent_id, ids)
    if kind == MEMORY:
        return memories.lines(database, agent_id, ids)
    if kind == ENTITY:
        return entities_store.lines(database, agent_id, ids)
    if kind == THREAD:
        heads = (nodes.summary_of(database, agent_id, one) for one in ids)
        return [_of_head(head) for head in heads if head is not None]
    texts = ((one, nodes.condensation(database, agent_id, one)) for one in ids)
    return [Line(agent_id, "node", one, text) for one, text in texts if text is not None]


def _of_head(head: ThreadSummary) -> Line:
    parts = [head.label, head.sample, head.next_action or "", *head.blockers, *head.loops]
    return Line(head.agent_id, "thread", head.thread_id, "\n".join(filter(None, parts)))
