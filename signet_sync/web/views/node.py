"""Shows one node of the graph: its text, what is above, below and beside it, its position in its thread."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from signet_sync.formats.calendar import quarter_of, week_of
from signet_sync.formats.timestamps import parse_instant
from signet_sync.graph.store import passages, timeline
from signet_sync.graph.store.timeline import ThreadState
from signet_sync.recall.expand import expand
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.web import markdown
from signet_sync.web.charts import axis as charts_axis
from signet_sync.web.charts import graph, lanes
from signet_sync.web.charts.axis import Axis
from signet_sync.web.commands import command_line
from signet_sync.web.link_targets import LinkTarget, of_blocks
from signet_sync.web.markdown import MarkdownBlock
from signet_sync.web.paging import portion
from signet_sync.web.periods import Period, Ways, ways
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
    """Shows one node, thread, fact, memory or entity, and its surroundings. Raises `UsageError` if it is unknown."""
    with reading(request.site.place) as database:
        found = expand(database, request.agent, request.path["node"], BUDGET)
        about = found["node"]
        around = [*(one for name in _GROUPS for one in found[name]), *_thread(about)]
        labels = passages.labels(database, request.agent, dict.fromkeys(around))
        blocks, links = _text_and_links(database, request.agent, about)
        data = {
            "node": about,
            "named": level(about.get("level", about["kind"])),
            "blocks": blocks,
            "links": links,
            "wording": found.get("wording"),
            "groups": {name: [Link(one, plain(labels.get(one, one))) for one in found[name]] for name in _GROUPS},
            "left_out": found.get("children_left_out", 0),
            "transcript": found["transcript"],
            "sources": found.get("sources", []),
            "expand": command_line(request, "expand", about["id"]),
            "thread": next((Link(one, labels.get(one, one)) for one in _thread(about)), None),
            **_along(database, request, about),
        }
    return WebPage("node", plain(about["label"] or about["id"]), data)


def _text_and_links(
    database: Database, agent_id: str, about: dict[str, Any]
) -> tuple[list[MarkdownBlock], dict[str, LinkTarget]]:
    """Returns a node's text as Markdown, and the targets of its links; node ids in our own texts are links, too."""
    text: str = about["text"]
    named = [] if about["kind"] in _WRITTEN else _NAMED.findall(text)
    linked = _NAMED.sub(r"[[\g<0>]]", text) if named else text
    blocks = markdown.blocks(markdown.numbered(linked, 1))
    return blocks, of_blocks(database, agent_id, blocks) | {one: LinkTarget("node", {"node": one}) for one in named}


def _thread(about: dict[str, Any]) -> Sequence[str]:
    thread_id = about["id"] if about["kind"] == "thread" else about.get("thread")
    return [thread_id] if thread_id else []


# ── in its thread ──


def _along(database: Database, request: ViewRequest, about: dict[str, Any]) -> dict[str, Any]:
    """Returns the lane of the node's thread in the node's period; for a thread also its sessions."""
    head = next(iter(timeline.states(database, request.agent, _thread(about)).values()), None)
    if head is None:
        return {"scene": None, "sessions": None, "ways": Ways()}
    extent = timeline.extent(database, request.agent, head.thread_id)
    whole = about["kind"] == "thread"
    period = Period.of(request) if whole else Period(_period(about), "")
    axis = period.axis(extent, request.now_us)
    held = lanes.counts(database, request.agent, head.thread_id, axis)
    return {
        "head": head,
        "scene": lanes.scene(axis),
        "lane": lanes.lane(database, request.agent, head.thread_id, head.label, axis, held, graph.peak_of([held])),
        "at": period.at or None,
        "period": charts_axis.titled(period.at) if period.at else None,
        "ways": ways(period, axis, extent) if whole else Ways(),
        "sessions": None,
        **(_sessions(database, request, head, axis, sum(held.values())) if whole else {}),
    }


def _period(about: dict[str, Any]) -> str:
    """Returns the quarter of an epoch, the week of anything else."""
    week = week_of(parse_instant(about["latest"]) or 0)
    return quarter_of(week) if about.get("level") == "epoch" else week


def _sessions(database: Database, request: ViewRequest, head: ThreadState, axis: Axis, held: int) -> dict[str, Any]:
    chosen = portion(range(held), request.query.get("page"), SESSIONS)
    found = timeline.sessions_between(
        database, request.agent, head.thread_id, axis.first_us, axis.last_us, limit=SESSIONS, skip=chosen.first
    )
    return {"sessions": found, "portion": chosen}


VIEWS: list[tuple[str, str, View]] = [("/graph/{node}", "node", node)]
