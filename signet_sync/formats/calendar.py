"""Computes ISO weeks and the quarters that they belong to, in UTC."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from signet_sync.formats.timestamps import DAY, instant_of, moment_of

WEEK = 7 * DAY


def week_of(us: int) -> str:
    """Returns the ISO week of an instant in microseconds since 1970 UTC: `2026-W13`; years are those from 1 to 9999."""
    year, week, _ = moment_of(us).isocalendar()
    return f"{year:04d}-W{week:02d}"


def week_span(week: str) -> tuple[int, int]:
    """Returns the first and the last microsecond of an ISO week."""
    first = _start(monday(week))
    return first, first + WEEK - 1


def quarter_of(week: str) -> str:
    """Returns the calendar quarter of a week's Monday: `2026-Q1`."""
    day = monday(week)
    return f"{day.year:04d}-Q{(day.month + 2) // 3}"


def quarter_span(quarter: str) -> tuple[int, int]:
    """Returns the first and the last microsecond of the weeks whose Monday is in the quarter."""
    year, _, number = quarter.partition("-Q")
    begin = date(int(year), 3 * int(number) - 2, 1)
    first = begin + timedelta(days=-begin.weekday() % 7)
    last = date(int(year), 3 * int(number), 31 if number in "14" else 30)
    weeks = (last - first).days // 7 + 1
    return _start(first), _start(first) + weeks * WEEK - 1


def monday(week: str) -> date:
    """Returns the first day of an ISO week."""
    year, _, number = week.partition("-W")
    return date.fromisocalendar(int(year), int(number), 1)


def _start(day: date) -> int:
    return instant_of(datetime(day.year, day.month, day.day, tzinfo=UTC))
