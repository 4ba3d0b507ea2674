"""A lane of the picture of threads: sessions along time as marks that never overlap and never become too many.

Coordinates are those of a view box `WIDTH` × `HEIGHT`, which the page stretches to the width that it has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from signet_sync.web.charts.axis import Axis, Cell

HEIGHT = 40.0
STACK = 3
_GAP = 1.0  # left and right of a mark
_EDGE = 2.0  # above and below of it
_INSET = 2.0  # between a frame and the bars in it
_FEW = 3
_LOWEST = 4.0  # what a bar of one session is at least


class Box(NamedTuple):
    """A rectangle: its left upper corner, its size."""

    x: float
    y: float
    width: float
    height: float


class Target(NamedTuple):
    """What a mark leads to: a node, or where there is none a period (of the thread, or of all of them)."""

    kind: str
    title: str
    node: str | None = None
    period: str | None = None


class Mark(NamedTuple):
    """A target as it is drawn, with so many sessions behind it."""

    target: Target
    box: Box
    sessions: int


class Lane(NamedTuple):
    """The marks of one lane from left to right, and the path of bars that tell how many sessions lie where."""

    marks: tuple[Mark, ...]
    bars: str = ""


class Moment(NamedTuple):
    """One session: when it ended, and what it leads to."""

    us: int
    target: Target


def framed(axis: Axis, counts: Mapping[int, int], targets: Mapping[str, Target], peak: int) -> Lane:
    """A frame for each cell that has sessions and a target (by the cell's key), with a bar for each slot in it.

    `counts` are sessions by slot; a bar for `peak` of them is as high as can be.
    """
    held = by_cell(axis, counts)
    marks = [
        Mark(targets[cell.key], _between(axis, cell.first_us, cell.last_us + 1, 0.0, HEIGHT), held[cell.key])
        for cell in axis.cells
        if held[cell.key] and cell.key in targets
    ]
    return Lane(tuple(marks), bars(axis, counts, peak))


def stacked(axis: Axis, counts: Mapping[int, int], moments: Iterable[Moment], crowd: Target) -> Lane:
    """A mark for each session: those of one slot above each other, where they are too many one mark (`crowd`) for all.

    `moments` need not hold them all: a slot of which one is missing is a crowd as well.
    """
    known: dict[int, list[Moment]] = defaultdict(list)
    for moment in moments:
        known[(moment.us - axis.first_us) // axis.slot_us].append(moment)
    held = {slot: sessions for slot, sessions in counts.items() if 0 <= slot < axis.slots and sessions > 0}
    apart = {slot for slot, sessions in held.items() if len(known[slot]) == sessions <= STACK}
    height = HEIGHT / max((held[slot] for slot in apart), default=1)
    marks: list[Mark] = []
    for slot, sessions in sorted(held.items()):
        if slot in apart:
            marks += [
                Mark(moment.target, _slot(axis, slot, HEIGHT - height * (place + 1), height), 1)
                for place, moment in enumerate(sorted(known[slot]))
            ]
        else:
            title = f"{sessions} sessions: {crowd.title}" if sessions > 1 else crowd.title
            marks.append(Mark(crowd._replace(title=title), _slot(axis, slot, 0.0, HEIGHT), sessions))
    return Lane(tuple(marks))


def bars(axis: Axis, counts: Mapping[int, int], peak: int) -> str:
    """A bar for each slot that has sessions, as the path of one shape."""
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
    """The lines between cells, as one path."""
    return "".join(f"M{axis.place(cell.first_us):.1f} 0V{HEIGHT:.0f}" for cell in axis.cells[1:])


def peak_of(lanes: Iterable[Mapping[int, int]]) -> int:
    """What a bar as high as a lane stands for: the most sessions that a slot of some lanes has, but never very few."""
    return max(_FEW, max((sessions for counts in lanes for sessions in counts.values()), default=0))


def summed(counts: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """The sessions of some lanes together, by slot."""
    total: dict[int, int] = defaultdict(int)
    for lane in counts:
        for slot, sessions in lane.items():
            total[slot] += sessions
    return dict(total)


def by_cell(axis: Axis, counts: Mapping[int, int]) -> dict[str, int]:
    """The sessions of each cell, by its key."""
    held = dict.fromkeys((cell.key for cell in axis.cells), 0)
    for slot, sessions in counts.items():
        if 0 <= slot < axis.slots:
            held[axis.key_of(axis.first_us + slot * axis.slot_us)] += sessions
    return held


def spaced(cells: Sequence[Cell], most: int) -> set[str]:
    """The keys of at most so many cells whose names are shown, at equal distances."""
    step = -(-len(cells) // most)
    return {cell.key for cell in cells[::step]}


def _edges(axis: Axis, slot: int) -> tuple[float, float]:
    left = axis.first_us + slot * axis.slot_us
    return axis.place(left), axis.place(left + axis.slot_us)


def _slot(axis: Axis, slot: int, top: float, height: float) -> Box:
    left = axis.first_us + slot * axis.slot_us
    return _between(axis, left, left + axis.slot_us, top, height)


def _between(axis: Axis, begin_us: int, end_us: int, top: float, height: float) -> Box:
    """The box between two instants, with a gap on all sides."""
    left, right = axis.place(begin_us), axis.place(end_us)
    return Box(
        round(left + _GAP, 2), round(top + _EDGE, 2), round(right - left - 2 * _GAP, 2), round(height - 2 * _EDGE, 2)
    )
