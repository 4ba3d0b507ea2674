"""Shows one node of the graph: its text, what is above, below and beside it; of a thread its sessions."""

import re
from typing import Any, NamedTuple

from signet_sync.graph.store import neighbours
from signet_sync.recall.expand import expand
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.web.commands import command_line
from signet_sync.web.link_targets import of_prose
from signet_sync.web.links import LinkTarget
from signet_sync.web.markdown import Prose
from signet_sync.web.paging import portion
from signet_sync.web.request import View, ViewRequest, WebPage
from signet_sync.web.words import level, plain

SESSIONS = 50
BUDGET = 4_000
_GROUPS = ("parents", "children", "siblings", "memories")
# Nodes that quote an artifact; the texts of all others are ours.
_WRITTEN = ("summary", "compaction", "chunk")
# A node's id in a text; it is resolved only when a person follows the link.
_NAMED = re.compile(r"(?<![\w-])[skcaetfmx]-[a-z2-7]{12}(?![\w-])", re.ASCII)


class Link(NamedTuple):
    """Another node: its id, and its name or else the id."""

    id: str
    label: str


def node(request: ViewRequest) -> WebPage:
    """Shows one node, thread, statement, memory or entity, and what is around. Raises `UsageError` if it is unknown."""
    with reading(request.site.place) as database:
        found = expand(database, request.agent, request.path["node"], BUDGET)
        about = found["node"]
        is_thread = about["kind"] == "thread"
        thread: str | None = about["id"] if is_thread else about.get("thread")
        around = [*(one for name in _GROUPS for one in found[name]), *([thread] if thread else [])]
        labels = neighbours.labels(database, request.agent, dict.fromkeys(around))
        prose, links = _text_and_links(database, request.agent, about)
        data = {
            "node": about,
            "named": level(about.get("level", about["kind"])),
            "prose": prose,
            "links": links,
            "groups": {name: [Link(one, plain(labels.get(one, one))) for one in found[name]] for name in _GROUPS},
            "left_out": found.get("children_left_out", 0),
            "transcript": found["transcript"],
            "sources": found.get("sources", []),
            "expand": command_line(request, "expand", about["id"]),
            "thread": Link(thread, labels.get(thread, thread)) if thread else None,
            "sessions": None,
        }
        if is_thread:
            chosen = portion(range(about["sessions"]), request.query.get("page"), SESSIONS)
            listed = neighbours.thread_page(database, request.agent, about["id"], SESSIONS, chosen.first)
            data |= {"sessions": listed, "portion": chosen}
    return WebPage("node", plain(about["label"] or about["id"]), data)


def _text_and_links(database: Database, agent_id: str, about: dict[str, Any]) -> tuple[Prose, dict[str, LinkTarget]]:
    """Returns a node's text as Markdown, and the targets of its links; node ids in our own texts are links, too."""
    text: str = about["text"]
    named = [] if about["kind"] in _WRITTEN else _NAMED.findall(text)
    linked = _NAMED.sub(r"[[\g<0>]]", text) if named else text
    prose = Prose(linked)
    return prose, of_prose(database, agent_id, [prose]) | {one: LinkTarget("node", {"node": one}) for one in named}


VIEWS: list[tuple[str, str, View]] = [("/threads/{node}", "node", node)]
