"""Reads the surroundings of a session: thread, neighbours, arcs and epochs, and entities that rest on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from signet_sync.entities import store as entities_store
from signet_sync.entities.evidence import Evidence, read_item
from signet_sync.formats.snapshot import Found
from signet_sync.graph.store import neighbours, nodes, passages
from signet_sync.graph.threads import ThreadSummary
from signet_sync.recall.store import references
from signet_sync.sessions.store import outcomes
from signet_sync.sessions.store.outcomes import ThreadNeighbour
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import IndexPlace
from signet_sync.sync.store.sessions import SessionRef
from signet_sync.text.sanitizer import sanitize_line
from signet_sync.web.words import plain

_PROFILES, _ITEMS = 300, 50


class GraphPosition(NamedTuple):
    """A session's position: its thread, the sessions beside it there, its node and number of pieces.

    `above` are the arcs and epochs that contain it, each with a line.
    """

    thread: ThreadSummary | None
    before: ThreadNeighbour | None
    after: ThreadNeighbour | None
    node: str | None
    pieces: int
    above: list[tuple[str, str]]


NOWHERE = GraphPosition(None, None, None, None, 0, [])


class EvidenceOfSession(NamedTuple):
    """An entity's item of evidence that rests on a session."""

    entity: str
    title: str
    item: Evidence


def lineage_of(database: Database, ref: SessionRef) -> GraphPosition:
    """Returns a session's position in the graph."""
    thread_id, before, after = outcomes.before_and_after(database, ref)
    node = next(iter(references.best(database, ref)), None)
    if node is None:
        return NOWHERE
    arcs = neighbours.parents(database, ref.agent_id, node)
    epochs = [epoch for arc in arcs for epoch in neighbours.parents(database, ref.agent_id, arc)]
    labels = passages.labels(database, ref.agent_id, dict.fromkeys([*arcs, *epochs]))
    head = nodes.summary_of(database, ref.agent_id, thread_id) if thread_id else None
    pieces = len(neighbours.children(database, ref.agent_id, node))
    return GraphPosition(head, before, after, node, pieces, [(one, plain(label)) for one, label in labels.items()])


def resting(place: IndexPlace, database: Database, agent_id: str, paths: Sequence[str]) -> list[EvidenceOfSession]:
    """Returns items of an agent's entity files that rest on some artifacts; bounded."""
    marks = [f"[[{path}|" for path in paths]
    limit = place.settings().max_file_bytes
    found: list[EvidenceOfSession] = []
    for profile in entities_store.entities(database, agent_id)[:_PROFILES] if marks else []:
        file = files.read(place.root, profile.path, limit)
        if not isinstance(file, Found):
            continue
        for line in file.raw.decode("utf-8", "replace").split("\n"):
            if "[[memory/" in line and any(mark in line for mark in marks):
                item = read_item(sanitize_line(line).removeprefix("- "))
                found += [EvidenceOfSession(profile.id, profile.title, item)] if item else []
    return found[:_ITEMS]
