"""Reads the picture of threads from the database: one lane each, on one time axis, and the targets of its marks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from signet_sync.formats.calendar import week_of
from signet_sync.formats.timestamps import moment_of
from signet_sync.graph.store import timeline
from signet_sync.graph.store.timeline import TimelineSession
from signet_sync.storage.database.connection import Database
from signet_sync.web.charts import graph
from signet_sync.web.charts.axis import WIDTH, Axis, Cell
from signet_sync.web.charts.graph import HEIGHT, Lane, MarkTarget, Moment
from signet_sync.web.dates import dated
from signet_sync.web.formatting import counted

Counts = Mapping[int, int]

MOST_SPOTS = 300  # sessions of a lane that are drawn one by one
_DEPTH = {"quarters": 2, "weeks": 1}
_CONDENSED = {"quarters": "epoch", "weeks": "arc"}
_LABELS, _LABELS_NARROW = 13, 7


class Tick(NamedTuple):
    """A cell's name below the picture, its position in percent, and whether wide and narrow pages have room for it."""

    cell: Cell
    percent: float
    wide: bool
    narrow: bool


class Scene(NamedTuple):
    """What all lanes of a picture share: size, lines between cells, names."""

    axis: Axis
    width: float
    height: float
    lines: str
    ticks: tuple[Tick, ...]


def scene(axis: Axis) -> Scene:
    """Returns what all lanes on an axis share."""
    wide, narrow = graph.spaced(axis.cells, _LABELS), graph.spaced(axis.cells, _LABELS_NARROW)
    ticks = tuple(
        Tick(cell, round(100 * axis.place(cell.first_us) / WIDTH, 2), cell.key in wide, cell.key in narrow)
        for cell in axis.cells
        if cell.key in wide | narrow
    )
    return Scene(axis, WIDTH, HEIGHT, graph.lines(axis), ticks)


def counts(database: Database, agent_id: str, thread_id: str | None, axis: Axis) -> dict[int, int]:
    """Returns the sessions of a thread, or of all threads, by slot."""
    return timeline.counts(database, agent_id, thread_id, axis.first_us, axis.last_us, axis.slot_us)


def lane(database: Database, agent_id: str, thread_id: str, label: str, axis: Axis, held: Counts, peak: int) -> Lane:
    """Returns the lane of a thread whose sessions by slot are known; each mark links to what it shows."""
    if axis.level == "days":
        return graph.stacked(
            axis, held, _moments(database, agent_id, thread_id, label, axis, held), _crowd(axis, label)
        )
    return graph.framed(axis, held, _targets(database, agent_id, thread_id, label, axis, held), peak)


def everything(axis: Axis, held: Counts) -> Lane:
    """Returns the lane of all threads: its marks link to the picture of a quarter or week, or to a day's list."""
    sessions = graph.by_cell(axis, held)
    kind = "day" if axis.level == "days" else "period"
    targets = {
        cell.key: MarkTarget(kind, f"{cell.title}: {counted(number, 'session')} of all threads", period=cell.key)
        for cell in axis.cells
        if (number := sessions[cell.key])
    }
    return graph.framed(axis, held, targets, graph.peak_of([held]))


# ── targets of marks ──


def _targets(
    database: Database, agent_id: str, thread_id: str, label: str, axis: Axis, held: Counts
) -> dict[str, MarkTarget]:
    """Returns by cell its arc or epoch, else its only session, else the thread in that time."""
    span = axis.first_us, axis.last_us
    condensed = {
        axis.key_of(one.latest_us): one
        for one in timeline.condensations(database, agent_id, thread_id, _DEPTH[axis.level], *span)
    }
    single: dict[str, TimelineSession] = {}
    if axis.level == "weeks" and len(condensed) < len(axis.cells):
        weeks = axis.cells[0].key, axis.cells[-1].key
        single = {
            week_of(spot.latest_us): spot for spot in timeline.alone_in_week(database, agent_id, thread_id, *weeks)
        }
    targets: dict[str, MarkTarget] = {}
    by_cell = graph.by_cell(axis, held)
    for cell in axis.cells:
        key, sessions = cell.key, by_cell[cell.key]
        if key in condensed:
            summary = condensed[key].label.partition(": ")[2]
            title = f"{label}, {cell.title}: {counted(sessions, 'session')}. {summary}"
            targets[key] = MarkTarget(_CONDENSED[axis.level], title, node=condensed[key].id)
        elif key in single:
            targets[key] = _session(label, single[key])._replace(kind="one")
        elif sessions:
            targets[key] = MarkTarget("some", f"{label}, {cell.title}: {counted(sessions, 'session')}", period=key)
    return targets


def _moments(database: Database, agent_id: str, thread_id: str, label: str, axis: Axis, held: Counts) -> list[Moment]:
    """Returns sessions one by one, unless there are too many to distinguish."""
    if sum(held.values()) > MOST_SPOTS:
        return []
    found = timeline.sessions_between(database, agent_id, thread_id, axis.first_us, axis.last_us, limit=MOST_SPOTS)
    return [Moment(spot.latest_us, _session(label, spot)) for spot in found]


def _session(label: str, spot: TimelineSession) -> MarkTarget:
    kind = "transcript" if spot.source_type == "chunk" else spot.source_type
    moment = moment_of(spot.latest_us)
    return MarkTarget(kind, f"{label}, {dated(moment)}, {moment:%H:%M}: {spot.sentence}", node=spot.node_id)


def _crowd(axis: Axis, label: str) -> MarkTarget:
    week = week_of(axis.first_us)
    return MarkTarget("crowd", f"{label}, within four hours", period=week)
