"""Computes the time axis of a picture: quarters, weeks or days in a row, never too many to read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from signet_sync.formats.calendar import WEEK, quarter_of, quarter_span, week_of, week_span
from signet_sync.formats.timestamps import DAY, day_of, moment_of
from signet_sync.web.dates import dated, in_year, weekday

Level = Literal["quarters", "weeks", "days"]

WIDTH = 1_000.0
MOST_QUARTERS = 20
MOST_WEEKS = 26
_FEWEST_WEEKS = 8
_WEEK = re.compile(r"\d{4}-W\d\d", re.ASCII)
_QUARTER = re.compile(r"\d{4}-Q[1-4]", re.ASCII)
# The unit by which sessions are counted: a few of these make a cell.
_SLOTS: dict[Level, int] = {"quarters": WEEK, "weeks": DAY, "days": DAY // 6}


class Cell(NamedTuple):
    """A quarter, week or day: key (`2026-Q1`, `2026-W13`, `2026-03-28`), first and last microsecond, names."""

    key: str
    first_us: int
    last_us: int
    name: str
    title: str


class Axis(NamedTuple):
    """Adjacent cells of one level, from left to right; at least one."""

    level: Level
    cells: tuple[Cell, ...]

    @property
    def first_us(self) -> int:
        """Returns the first microsecond."""
        return self.cells[0].first_us

    @property
    def last_us(self) -> int:
        """Returns the last microsecond."""
        return self.cells[-1].last_us

    @property
    def slot_us(self) -> int:
        """Returns the length of a slot in microseconds: sessions are counted by slots, and every cell has several."""
        return _SLOTS[self.level]

    @property
    def slots(self) -> int:
        """Returns how many slots there are."""
        return (self.last_us + 1 - self.first_us) // self.slot_us

    def key_of(self, us: int) -> str:
        """Returns the key of the cell that contains an instant, or would contain it."""
        if self.level == "days":
            return day_of(us)
        return week_of(us) if self.level == "weeks" else quarter_of(week_of(us))

    def place(self, us: int) -> float:
        """Returns an instant's position between 0 and `WIDTH`; one outside gets the nearer end."""
        share = (us - self.first_us) / (self.last_us + 1 - self.first_us)
        return round(WIDTH * min(max(share, 0.0), 1.0), 2)


# ── choosing an axis ──


def whole(earliest_us: int, latest_us: int, now_us: int) -> Axis:
    """Returns an axis for all time between two instants: weeks if they are few, else the newest quarters.

    A date in the future does not extend it, unless there is nothing else.
    """
    end = min(latest_us, max(now_us, earliest_us))
    weeks = (week_span(week_of(end))[0] - week_span(week_of(earliest_us))[0]) // WEEK + 1
    if weeks <= MOST_WEEKS:
        return _weeks(max(weeks, _FEWEST_WEEKS), end)
    return _back_from(quarter_of(week_of(end)), earliest_us)


def until(quarter: str, earliest_us: int) -> Axis | None:
    """Returns quarters up to this one, from the earliest instant; None if it is no quarter."""
    return _back_from(quarter, earliest_us) if _is_quarter(quarter) else None


def within(period: str) -> Axis | None:
    """Returns the weeks of a quarter (`2026-Q1`) or the days of a week (`2026-W13`); None if it is neither."""
    if _is_quarter(period):
        first, last = quarter_span(period)
        return Axis("weeks", tuple(_week(us) for us in range(first, last, WEEK)))
    if _is_week(period):
        return Axis("days", tuple(_days(week_span(period)[0])))
    return None


def above(period: str) -> str | None:
    """Returns the quarter of a week; None for a quarter, whose parent is all time."""
    return quarter_of(period) if _is_week(period) else None


def beside(period: str) -> tuple[str, str]:
    """Returns the quarters or weeks before and after one."""
    name = quarter_of if _is_quarter(period) else str
    first, last = quarter_span(period) if _is_quarter(period) else week_span(period)
    return name(week_of(first - 1)), name(week_of(last + 1))


def titled(period: str) -> str:
    """Returns a quarter or week as a heading."""
    return _quarter(period).title if _is_quarter(period) else _week(week_span(period)[0]).title


def _is_quarter(text: str) -> bool:
    return _QUARTER.fullmatch(text) is not None and text[:4] != "0000"


def _is_week(text: str) -> bool:
    try:
        return _WEEK.fullmatch(text) is not None and week_of(week_span(text)[0]) == text
    except ValueError:
        return False


def _back_from(quarter: str, earliest_us: int) -> Axis:
    cells = [_quarter(quarter)]
    while len(cells) < MOST_QUARTERS and cells[-1].first_us > earliest_us:
        cells.append(_quarter(quarter_of(week_of(cells[-1].first_us - 1))))
    return Axis("quarters", tuple(reversed(cells)))


def _weeks(count: int, end_us: int) -> Axis:
    last = week_span(week_of(end_us))[0]
    return Axis("weeks", tuple(_week(last - WEEK * back) for back in reversed(range(count))))


# ── cells ──


def _quarter(key: str) -> Cell:
    year, _, number = key.partition("-Q")
    return Cell(key, *quarter_span(key), f"Q{number} {year}", f"quarter {number} of {year}")


def _week(first_us: int) -> Cell:
    first, last = moment_of(first_us), moment_of(first_us + WEEK - 1)
    key = week_of(first_us)
    title = f"week {key[6:]}, {in_year(first)} to {dated(last)}"
    return Cell(key, first_us, first_us + WEEK - 1, in_year(first), title)


def _days(first_us: int) -> Iterator[Cell]:
    for day in range(7):
        begin = first_us + day * DAY
        moment = moment_of(begin)
        yield Cell(
            moment.date().isoformat(),
            begin,
            begin + DAY - 1,
            f"{weekday(moment)} {moment.day}",
            f"{weekday(moment)}, {dated(moment)}",
        )
