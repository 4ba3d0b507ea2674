"""Computes a lane in the picture of threads: sessions along time as marks that never overlap nor become too many.

Coordinates are those of a view box `WIDTH` × `HEIGHT`, which the page stretches to its width.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from signet_sync.web.charts.axis import Axis, Cell

HEIGHT = 40.0
STACK = 3
_GAP = 1.0  # left and right of a mark
_EDGE = 2.0  # above and below a mark
_INSET = 2.0  # between a frame and its bars
_FEW = 3
_LOWEST = 4.0  # the least height of a bar


class Box(NamedTuple):
    """A rectangle: its upper left corner and size."""

    x: float
    y: float
    width: float
    height: float


class MarkTarget(NamedTuple):
    """What a mark links to: a node, or else a period (of the thread, or of all threads)."""

    kind: str
    title: str
    node: str | None = None
    period: str | None = None


class SessionMark(NamedTuple):
    """A drawn target, with its number of sessions."""

    target: MarkTarget
    box: Box
    sessions: int


class Lane(NamedTuple):
    """The marks of one lane from left to right, and the path of bars that shows sessions over time."""

    marks: tuple[SessionMark, ...]
    bars: str = ""


class Moment(NamedTuple):
    """One session: when it ended, and what it links to."""

    us: int
    target: MarkTarget


def framed(axis: Axis, counts: Mapping[int, int], targets: Mapping[str, MarkTarget], peak: int) -> Lane:
    """Draws a frame for each cell that has sessions and a target (by the cell's key), with a bar for each slot.

    `counts` are sessions by slot; a bar for `peak` of them has the full height.
    """
    held = by_cell(axis, counts)
    marks = [
        SessionMark(targets[cell.key], _between(axis, cell.first_us, cell.last_us + 1, 0.0, HEIGHT), held[cell.key])
        for cell in axis.cells
        if held[cell.key] and cell.key in targets
    ]
    return Lane(tuple(marks), bars(axis, counts, peak))


def stacked(axis: Axis, counts: Mapping[int, int], moments: Iterable[Moment], crowd: MarkTarget) -> Lane:
    """Draws a mark for each session: those of one slot stacked, or one mark (`crowd`) if they are too many.

    `moments` may be incomplete: a slot with a missing session is a crowd as well.
    """
    known: dict[int, list[Moment]] = defaultdict(list)
    for moment in moments:
        known[(moment.us - axis.first_us) // axis.slot_us].append(moment)
    held = {slot: sessions for slot, sessions in counts.items() if 0 <= slot < axis.slots and sessions > 0}
    apart = {slot for slot, sessions in held.items() if len(known[slot]) == sessions <= STACK}
    height = HEIGHT / max((held[slot] for slot in apart), default=1)
    marks: list[SessionMark] = []
    for slot, sessions in sorted(held.items()):
        if slot in apart:
            marks += [
                SessionMark(moment.target, _slot(axis, slot, HEIGHT - height * (place + 1), height), 1)
                for place, moment in enumerate(sorted(known[slot]))
            ]
        else:
            title = f"{sessions} sessions: {crowd.title}" if sessions > 1 else crowd.title
            marks.append(SessionMark(crowd._replace(title=title), _slot(axis, slot, 0.0, HEIGHT), sessions))
    return Lane(tuple(marks))


def bars(axis: Axis, counts: Mapping[int, int], peak: int) -> str:
    """Draws a bar for each slot that has sessions, as the path of one shape."""
    room = HEIGHT - 2 * (_EDGE + _INSET)
    foot = HEIGHT - _EDGE - _INSET
    drawn: list[str] = []
    for slot, sessions in sorted(counts.items()):
        if 0 <= slot < axis.slots and sessions > 0:
            height = min(max(room * sessions / max(peak, 1), _LOWEST), room)
            left, right = _edges(axis, slot)
            gap = (right - left) * 0.12
            drawn.append(f"M{left + gap:.1f} {foot:.1f}V{foot - height:.1f}H{right - gap:.1f}V{foot:.1f}z")
    return "".join(drawn)


def lines(axis: Axis) -> str:
    """Draws the lines between cells, as one path."""
    return "".join(f"M{axis.place(cell.first_us):.1f} 0V{HEIGHT:.0f}" for cell in axis.cells[1:])


def peak_of(lanes: Iterable[Mapping[int, int]]) -> int:
    """Returns the number of sessions of a full bar: the most in a slot of some lanes, but never very few."""
    return max(_FEW, max((sessions for counts in lanes for sessions in counts.values()), default=0))


def summed(counts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Adds up the sessions of some lanes, by slot."""
    total: dict[int, int] = defaultdict(int)
    for lane in counts:
        for slot, sessions in lane.items():
            total[slot] += sessions
    return dict(total)


def by_cell(axis: Axis, counts: Mapping[int, int]) -> dict[str, int]:
    """Returns the sessions of each cell, by its key."""
    held = dict.fromkeys((cell.key for cell in axis.cells), 0)
    for slot, sessions in counts.items():
        if 0 <= slot < axis.slots:
            held[axis.key_of(axis.first_us + slot * axis.slot_us)] += sessions
    return held


def spaced(cells: Sequence[Cell], most: int) -> set[str]:
    """Returns the keys of at most so many cells whose names are shown, at equal distances."""
    step = -(-len(cells) // most)
    return {cell.key for cell in cells[::step]}


def _edges(axis: Axis, slot: int) -> tuple[float, float]:
    left = axis.first_us + slot * axis.slot_us
    return axis.place(left), axis.place(left + axis.slot_us)


def _slot(axis: Axis, slot: int, top: float, height: float) -> Box:
    left = axis.first_us + slot * axis.slot_us
    return _between(axis, left, left + axis.slot_us, top, height)


def _between(axis: Axis, begin_us: int, end_us: int, top: float, height: float) -> Box:
    """Returns the box between two instants, with a gap on all sides."""
    left, right = axis.place(begin_us), axis.place(end_us)
    return Box(
        round(left + _GAP, 2), round(top + _EDGE, 2), round(right - left - 2 * _GAP, 2), round(height - 2 * _EDGE, 2)
    )
