"""Reads the picture of threads: one lane for each, on one line of time, and what the marks in them lead to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from signet_sync.formats.calendar import week_of
from signet_sync.formats.timestamps import moment_of
from signet_sync.graph.store import timeline
from signet_sync.graph.store.timeline import Spot
from signet_sync.storage.database.connection import Database
from signet_sync.web.charts import graph
from signet_sync.web.charts.axis import WIDTH, Axis, Cell
from signet_sync.web.charts.graph import HEIGHT, Lane, Moment, Target
from signet_sync.web.dates import dated
from signet_sync.web.formatting import counted

Counts = Mapping[int, int]

MOST_SPOTS = 300  # sessions of a lane that are read to be drawn one by one
_DEPTH = {"quarters": 2, "weeks": 1}
_CONDENSED = {"quarters": "epoch", "weeks": "arc"}
_LABELS, _LABELS_NARROW = 13, 7


class Tick(NamedTuple):
    """A cell's name under the picture, from which share of the width on, and on which pages there is room for it."""

    cell: Cell
    percent: float
    wide: bool
    narrow: bool


class Scene(NamedTuple):
    """What all lanes of a picture share: its size, the lines between cells, their names."""

    axis: Axis
    width: float
    height: float
    lines: str
    ticks: tuple[Tick, ...]


def scene(axis: Axis) -> Scene:
    """The ground on which lanes are drawn."""
    wide, narrow = graph.spaced(axis.cells, _LABELS), graph.spaced(axis.cells, _LABELS_NARROW)
    ticks = tuple(
        Tick(cell, round(100 * axis.place(cell.first_us) / WIDTH, 2), cell.key in wide, cell.key in narrow)
        for cell in axis.cells
        if cell.key in wide | narrow
    )
    return Scene(axis, WIDTH, HEIGHT, graph.lines(axis), ticks)


def counts(database: Database, agent_id: str, thread_id: str | None, axis: Axis) -> dict[int, int]:
    """The sessions of a thread, or of all of them, by slot."""
    return timeline.counts(database, agent_id, thread_id, axis.first_us, axis.last_us, axis.slot_us)


def lane(database: Database, agent_id: str, thread_id: str, label: str, axis: Axis, held: Counts, peak: int) -> Lane:
    """The lane of one thread, of which the sessions by slot are known; each mark leads to what it shows."""
    if axis.level == "days":
        return graph.stacked(
            axis, held, _moments(database, agent_id, thread_id, label, axis, held), _crowd(axis, label)
        )
    return graph.framed(axis, held, _targets(database, agent_id, thread_id, label, axis, held), peak)


def everything(axis: Axis, held: Counts) -> Lane:
    """The lane of all threads together: its marks lead to the picture of a quarter or week, to the list of a day."""
    sessions = graph.by_cell(axis, held)
    kind = "day" if axis.level == "days" else "period"
    targets = {
        cell.key: Target(kind, f"{cell.title}: {counted(number, 'session')} of all threads", period=cell.key)
        for cell in axis.cells
        if (number := sessions[cell.key])
    }
    return graph.framed(axis, held, targets, graph.peak_of([held]))


# ── what marks lead to ──


def _targets(
    database: Database, agent_id: str, thread_id: str, label: str, axis: Axis, held: Counts
) -> dict[str, Target]:
    """By cell: its arc or epoch, else the one session that it has, else the thread in that time."""
    span = axis.first_us, axis.last_us
    condensed = {
        axis.key_of(one.latest_us): one
        for one in timeline.condensed(database, agent_id, thread_id, _DEPTH[axis.level], *span)
    }
    single: dict[str, Spot] = {}
    if axis.level == "weeks" and len(condensed) < len(axis.cells):
        weeks = axis.cells[0].key, axis.cells[-1].key
        single = {week_of(spot.latest_us): spot for spot in timeline.alone(database, agent_id, thread_id, *weeks)}
    targets: dict[str, Target] = {}
    by_cell = graph.by_cell(axis, held)
    for cell in axis.cells:
        key, sessions = cell.key, by_cell[cell.key]
        if key in condensed:
            told = condensed[key].label.partition(": ")[2]
            title = f"{label}, {cell.title}: {counted(sessions, 'session')}. {told}"
            targets[key] = Target(_CONDENSED[axis.level], title, node=condensed[key].id)
        elif key in single:
            targets[key] = _session(label, single[key])._replace(kind="one")
        elif sessions:
            targets[key] = Target("some", f"{label}, {cell.title}: {counted(sessions, 'session')}", period=key)
    return targets


def _moments(database: Database, agent_id: str, thread_id: str, label: str, axis: Axis, held: Counts) -> list[Moment]:
    """Sessions one by one, as long as they are not so many that they could not be told apart."""
    if sum(held.values()) > MOST_SPOTS:
        return []
    found = timeline.spots(database, agent_id, thread_id, axis.first_us, axis.last_us, limit=MOST_SPOTS)
    return [Moment(spot.latest_us, _session(label, spot)) for spot in found]


def _session(label: str, spot: Spot) -> Target:
    kind = "transcript" if spot.source_type == "chunk" else spot.source_type
    moment = moment_of(spot.latest_us)
    return Target(kind, f"{label}, {dated(moment)}, {moment:%H:%M}: {spot.sentence}", node=spot.node_id)


def _crowd(axis: Axis, label: str) -> Target:
    week = week_of(axis.first_us)
    return Target("crowd", f"{label}, within four hours", period=week)
