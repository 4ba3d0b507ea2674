"""Lists the threads of an agent; shows one node of the graph: its text, and what is above, below and beside it."""

from __future__ import annotations

import re
from typing import Any

from signet_sync.graph.store import neighbours
from signet_sync.memories.store import memories
from signet_sync.pages.sections import distinct_names
from signet_sync.recall.expand import expand
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.web.link_targets import find_prose_targets
from signet_sync.web.markdown import LinkTarget, Prose
from signet_sync.web.request import View, ViewRequest, WebPage, portion

THREADS = 50  # on a page
SESSIONS = 50
BUDGET = 4_000
_GROUPS = ("parents", "children", "siblings", "memories")
# Nodes that quote an artifact; the texts of all others are ours.
_WRITTEN = ("summary", "compaction", "chunk")
_LEVELS = {"arc": "week", "epoch": "quarter", "chunk": "part of a transcript"}
_LEVEL = re.compile(rf"({'|'.join(_LEVELS)})(?= \d{{4}}-)")
# A node's id in a text; it is resolved only when a person follows the link.
_NAMED = re.compile(r"(?<![\w-])[skcaetfmx]-[a-z2-7]{12}(?![\w-])", re.ASCII)


def threads(request: ViewRequest) -> WebPage:
    """Shows the threads whose names contain the words `q`, the one that was worked on last first."""
    words = request.query.get("q", "").strip()
    wanted = words.casefold().split()
    with reading(request.site.place) as database:
        labels = neighbours.thread_labels(database, request.agent)
        found = [one for one, label in labels.items() if all(word in label.casefold() for word in wanted)]
        chosen = portion(found, request.query.get("page"), THREADS)
        rows = neighbours.thread_states(database, request.agent, chosen.rows)
    names = distinct_names(one.project for one in rows)
    shown = [one._replace(label=names.get(one.project or "", one.label)) for one in rows]
    return WebPage("threads", "Threads", {"rows": shown, "portion": chosen, "words": words})


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
            "named": _LEVELS.get(level := about.get("level", about["kind"]), level),
            "pinned": memories.is_pinned(database, request.agent, about["id"]),
            "prose": prose,
            "links": links,
            "groups": {name: [(one, _plain(labels.get(one, one))) for one in found[name]] for name in _GROUPS},
            "left_out": found.get("children_left_out", 0),
            "transcript": found["transcript"],
            "recalled": found.get("recalled"),
            "risen": found.get("risen"),
            "sources": found.get("sources", []),
            "thread": (thread, labels.get(thread, thread)) if thread else None,
            "sessions": None,
        }
        if is_thread:
            chosen = portion(range(about["sessions"]), request.query.get("page"), SESSIONS)
            listed = neighbours.thread_page(database, request.agent, about["id"], SESSIONS, chosen.first)
            data |= {"sessions": listed, "portion": chosen}
    return WebPage("node", _plain(about["label"] or about["id"]), data)


def _text_and_links(database: Database, agent_id: str, about: dict[str, Any]) -> tuple[Prose, dict[str, LinkTarget]]:
    """Returns a node's text as Markdown, and the targets of its links; node ids in our own texts are links, too."""
    text: str = about["text"]
    named = [] if about["kind"] in _WRITTEN else _NAMED.findall(text)
    linked = _NAMED.sub(r"[[\g<0>]]", text) if named else text
    prose = Prose(linked)
    return prose, find_prose_targets(database, agent_id, [prose]) | {
        one: LinkTarget("node", {"node": one}) for one in named
    }


def _plain(label: str) -> str:
    """Returns the label of a node with its kind in plain words."""
    return _LEVEL.sub(lambda match: _LEVELS[match[1]], label, count=1) if _LEVEL.match(label) else label


VIEWS: list[tuple[str, str, View]] = [("/threads", "threads", threads), ("/threads/{node}", "node", node)]
