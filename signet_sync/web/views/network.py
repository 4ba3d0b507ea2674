"""Shows threads, entities, sessions and what belongs to them as a network that one explores node by node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from signet_sync.entities import store as entities_store
from signet_sync.formats.entity_paths import KINDS as ENTITY_KINDS
from signet_sync.formats.handle import LETTERS
from signet_sync.graph.store import passages, timeline
from signet_sync.recall.expand import expand
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.text.sentences import basename
from signet_sync.web.link_targets import LinkTarget
from signet_sync.web.request import View, ViewRequest, WebPage
from signet_sync.web.words import level, plain

BEGIN = 30  # threads, and entities, at the beginning
MORE = 15  # neighbours of each kind
_GROUPS = ("parents", "children", "siblings", "memories")
_ALWAYS = (-(1 << 62), 1 << 62)
_NAMES = {"summary": "session", "entity": "topic", "user": "entity", "part": "entity"}


class NetworkNode(NamedTuple):
    """A node: its kind in plain words, its label, the view that shows it, and the ids of its neighbours."""

    id: str
    kind: str
    label: str
    target: LinkTarget
    links: Sequence[str]


def network(request: ViewRequest) -> WebPage:
    """Shows the busiest threads and the entities; with `node` that node and its neighbours.

    Raises `UsageError` for an unknown node.
    """
    asked = request.query.get("node", "")
    with reading(request.site.place) as database:
        if asked:
            nodes = list(_around(database, request.agent, asked))
            title = f"Network around {nodes[0].label}"
        else:
            nodes, title = [*_threads(database, request.agent), *_entities(database, request.agent)], "Network"
    kinds = {node.kind for node in nodes}
    return WebPage("network", title, {"nodes": _named_alike(nodes), "asked": asked, "kinds": kinds})


def _threads(database: Database, agent_id: str) -> list[NetworkNode]:
    active = timeline.activity(database, agent_id, *_ALWAYS)[:BEGIN]
    heads = timeline.states(database, agent_id, (thread_id for thread_id, *_ in active))
    return [_node(head.thread_id, f"thread · {head.label}: {head.status}", ()) for head in heads.values()]


def _entities(database: Database, agent_id: str) -> Iterable[NetworkNode]:
    for entity, title, _ in entities_store.titled(database, agent_id, "", BEGIN):
        yield _node(entity, title, _participants(database, agent_id, entity))


def _participants(database: Database, agent_id: str, entity: str) -> Sequence[str]:
    """Returns the members of a relationship; its other entities name it from their side."""
    found = entities_store.find(database, agent_id, entity) if _kind(entity) == ENTITY_KINDS[-1] else []
    return entities_store.neighbours(database, found[0]) if len(found) == 1 else ()


def _around(database: Database, agent_id: str, asked: str) -> Iterable[NetworkNode]:
    about = expand(database, agent_id, asked, 0)
    centre: str = about["node"]["id"]
    if about["node"]["kind"] == "thread":
        spots = timeline.sessions_between(database, agent_id, centre, *_ALWAYS, limit=MORE, skip=0)
        found = [spot.node_id for spot in spots] + about["memories"][:MORE]
    else:
        thread = about["node"].get("thread")
        found = [*([thread] if thread else []), *(one for name in _GROUPS for one in islice(about[name], MORE))]
    row = entities_store.find(database, agent_id, centre) if centre[:1] in "upr" else []
    found += entities_store.neighbours(database, row[0])[:MORE] if len(row) == 1 else []
    around = [one for one in dict.fromkeys(found) if one != centre]
    labels = passages.labels(database, agent_id, [centre, *around])
    yield _node(centre, labels.get(centre, about["node"].get("label") or centre), around)
    for one in around:
        yield _node(one, labels.get(one, one), ())


def _node(node_id: str, label: str, links: Sequence[str]) -> NetworkNode:
    """Builds a node; of a label only the words are kept, since the kind has its own place."""
    kind = _kind(node_id)
    target = (
        LinkTarget("entity", {"entity": node_id}) if kind in ENTITY_KINDS else LinkTarget("node", {"node": node_id})
    )
    if kind == "memory":
        target = LinkTarget("memory", {"memory": node_id})
    words = plain(label).partition(" · ")[2] or label
    if kind == "thread":
        words = words.rpartition(": ")[0] or words  # without its status
    return NetworkNode(node_id, _NAMES.get(kind, level(kind)), words, target, links)


def _kind(node_id: str) -> str:
    return LETTERS.get(node_id[:1], "")


def _named_alike(nodes: list[NetworkNode]) -> list[NetworkNode]:
    """Links each entity to the thread of the project that has its name; the labels of both get their kind."""
    threads = {basename(one.label).casefold(): one.id for one in nodes if one.kind == "thread"}
    named = {one.label.casefold() for one in nodes if one.kind == "entity"} & threads.keys()
    both = {threads[name] for name in named}

    def told_apart(one: NetworkNode) -> NetworkNode:
        if one.id in both:
            return one._replace(label=f"{one.label} (project)")
        if one.kind == "entity" and (name := one.label.casefold()) in named:
            return one._replace(label=f"{one.label} (entity)", links=[*one.links, threads[name]])
        return one

    return [told_apart(one) for one in nodes]


# Before the view of one node, whose path would match this one.
VIEWS: list[tuple[str, str, View]] = [("/graph/network", "network", network)]
