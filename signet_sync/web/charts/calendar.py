"""Computes a calendar of sessions a day: numbers in, squares of a picture out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from itertools import groupby
from typing import NamedTuple

from signet_sync.web.dates import MONTHS, called, month

WEEKS = 53
LEVELS = 4
SIDE, STEP = 11, 14  # of a square, and the distance between two
LEFT, TOP = 26, 16  # space for the names of days and months
_NARROWEST = 3  # weeks that a month's name takes


class Square(NamedTuple):
    """One day: its sessions, their level compared with other days (0 to 4), and its position."""

    day: str
    label: str
    sessions: int
    level: int
    x: int
    y: int


class Label(NamedTuple):
    """A word beside the squares."""

    text: str
    x: int
    y: int


class Month(NamedTuple):
    """The days of a month that have sessions, newest first."""

    name: str
    sessions: int
    days: list[Square]


class Calendar(NamedTuple):
    """The picture of a year of days, and the same as a list."""

    squares: list[Square]
    labels: list[Label]
    months: list[Month]
    width: int
    height: int
    sessions: int
    busiest: Square | None


def calendar(counts: Mapping[str, int], today: str) -> Calendar:
    """Computes the weeks up to that of `today`, Mondays first; `counts` are sessions by day, `YYYY-MM-DD`."""
    last = date.fromisoformat(today)
    first = last - timedelta(days=last.weekday() + 7 * (WEEKS - 1))
    shown = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    steps = _steps([counts[one.isoformat()] for one in shown if counts.get(one.isoformat())])
    squares = [_square(one, number, counts.get(one.isoformat(), 0), steps) for number, one in enumerate(shown)]
    busy = [square for square in reversed(squares) if square.sessions]
    return Calendar(
        squares,
        [*_days(), *_months(shown)],
        [_month(list(days)) for _, days in groupby(busy, key=lambda square: square.day[:7])],
        LEFT + WEEKS * STEP,
        TOP + 7 * STEP,
        sum(square.sessions for square in busy),
        max(busy, key=lambda square: square.sessions, default=None),
    )


def _steps(counts: list[int]) -> list[int]:
    """Returns the least number of sessions for each level: quartiles of the days that have any.

    So one day of a hundred does not make all others pale. If days differ little, each number is a level of its own.
    """
    different = sorted(set(counts))
    if len(different) <= LEVELS:
        return different
    ordered = sorted(counts)
    return sorted({different[0], *(ordered[len(ordered) * part // LEVELS] for part in range(1, LEVELS))})


def _square(day: date, number: int, sessions: int, steps: list[int]) -> Square:
    week, weekday = divmod(number, 7)
    level = sum(1 for step in steps if sessions >= step) if sessions else 0
    return Square(day.isoformat(), called(day), sessions, min(level, LEVELS), LEFT + week * STEP, TOP + weekday * STEP)


def _days() -> list[Label]:
    return [Label(name, 0, TOP + row * STEP + SIDE - 2) for row, name in ((0, "Mon"), (2, "Wed"), (4, "Fri"))]


def _months(shown: list[date]) -> list[Label]:
    """Places a month's name over its first whole week, if there is room."""
    found: list[Label] = []
    for week in range(len(shown) // 7 + 1):
        monday = shown[0] + timedelta(days=7 * week)
        begins = monday.day <= 7
        if begins and week <= WEEKS - _NARROWEST:
            found.append(Label(month(monday), LEFT + week * STEP, TOP - 6))
    return found


def _month(days: list[Square]) -> Month:
    first = date.fromisoformat(days[0].day)
    return Month(f"{MONTHS[first.month - 1]} {first.year}", sum(square.sessions for square in days), days)
