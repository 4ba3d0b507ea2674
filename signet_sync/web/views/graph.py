"""Shows the graph: a lane for each thread along one time axis, from all time down to the sessions of a week."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from signet_sync.graph.store import timeline
from signet_sync.graph.store.timeline import Extent, ThreadState
from signet_sync.storage.database.connection import Database
from signet_sync.sync.read_only import reading
from signet_sync.web.charts import axis as charts_axis
from signet_sync.web.charts import graph as charts_graph
from signet_sync.web.charts import lanes
from signet_sync.web.charts.axis import Axis
from signet_sync.web.charts.graph import Lane
from signet_sync.web.paging import portion
from signet_sync.web.periods import Period, ways
from signet_sync.web.request import View, ViewRequest, WebPage

LANES = 25


class ThreadRow(NamedTuple):
    """One thread in the picture: its summary, its sessions in this period, its lane."""

    head: ThreadState
    sessions: int
    lane: Lane


class Rest(NamedTuple):
    """The threads on other pages of the picture: how many, their sessions in this period, their bars."""

    threads: int
    sessions: int
    bars: str


class PictureRequest(NamedTuple):
    """The requested part of the picture; an unknown order means the default."""

    period: Period
    words: str
    order: str
    page: str

    @classmethod
    def of(cls, request: ViewRequest) -> PictureRequest:
        """Reads it from the query."""
        order = "newest" if request.query.get("sort") == "newest" else ""
        return cls(Period.of(request), request.query.get("q", "").strip(), order, request.query.get("page", ""))


def graph(request: ViewRequest) -> WebPage:
    """Shows the picture of all threads. Raises `UsageError` for an invalid period."""
    asked = PictureRequest.of(request)
    title = "Graph"
    with reading(request.site.place) as database:
        extent = timeline.extent(database, request.agent)
        if not extent.sessions:
            return WebPage("graph", title, {"extent": extent})
        axis = asked.period.axis(extent, request.now_us)
        if asked.period.at:
            title = f"Graph, {charts_axis.titled(asked.period.at)}"
        return WebPage("graph", title, _picture(database, request.agent, axis, extent, asked))


def _picture(database: Database, agent_id: str, axis: Axis, extent: Extent, asked: PictureRequest) -> dict[str, Any]:
    active = _active(database, agent_id, axis, asked)
    chosen = portion(active, asked.page, LANES)
    heads = timeline.states(database, agent_id, (thread_id for thread_id, *_ in chosen.rows))
    held = {thread_id: lanes.counts(database, agent_id, thread_id, axis) for thread_id in heads}
    peak = charts_graph.peak_of(held.values())
    rows = [
        ThreadRow(
            head, sum(held[name].values()), lanes.lane(database, agent_id, name, head.label, axis, held[name], peak)
        )
        for name, head in heads.items()
    ]
    every = lanes.counts(database, agent_id, None, axis)
    return {
        "extent": extent,
        "asked": asked,
        "at": asked.period.at or None,
        "scene": lanes.scene(axis),
        "everything": lanes.everything(axis, every),
        "all": sum(every.values()),
        "shown": sum(sessions for _, sessions, _ in active),
        "rows": rows,
        "rest": None if asked.words else _rest(axis, every, held.values(), len(active) - len(rows)),
        "portion": chosen,
        "ways": ways(asked.period, axis, extent),
    }


def _active(database: Database, agent_id: str, axis: Axis, asked: PictureRequest) -> list[tuple[str, int, int]]:
    """Returns the threads with sessions in this period whose names contain the words, in the requested order."""
    active = timeline.activity(database, agent_id, axis.first_us, axis.last_us)
    if asked.words:
        words = asked.words.casefold().split()
        labels = timeline.labels(database, agent_id)
        active = [one for one in active if all(word in labels.get(one[0], "").casefold() for word in words)]
    return sorted(active, key=lambda one: (-one[2], one[0])) if asked.order == "newest" else active


def _rest(axis: Axis, every: lanes.Counts, shown: Iterable[lanes.Counts], threads: int) -> Rest | None:
    if threads < 1:
        return None
    above = charts_graph.summed(shown)
    left = {slot: sessions - above.get(slot, 0) for slot, sessions in every.items()}
    return Rest(threads, sum(left.values()), charts_graph.bars(axis, left, charts_graph.peak_of([left])))


VIEWS: list[tuple[str, str, View]] = [("/graph", "graph", graph)]
