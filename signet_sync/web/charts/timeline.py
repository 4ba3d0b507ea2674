"""Computes a timeline of all sessions: bars of one day, one week or more, from the first session until today. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple

from signet_sync.web.dates import called

BARS = 100
STEP, HEIGHT = 10, 40  # of a bar with its gap; of the picture
_LEAST = 3.0  # height of a bar with one session
_YEARS = 10  # before today that are shown at most


class Bar(NamedTuple):
    """Some days, from `first` to `last` (`YYYY-MM-DD`), their sessions, and the bar's place."""

    first: str
    last: str
    label: str
    sessions: int
    x: int
    height: float


class Timeline(NamedTuple):
    """The bars without a gap, the picture's width, its first and last day, and the days of a bar."""

    bars: list[Bar]
    width: int
    first: str
    last: str
    days: int


def timeline(counts: Mapping[str, int], today: str) -> Timeline | None:
    """Computes the bars from sessions by day; None if all are of one day."""
    last = date.fromisoformat(today)
    known = {day: sessions for text, sessions in counts.items() if (day := _day(text)) is not None}
    shown = {day: known[day] for day in known if last - timedelta(days=366 * _YEARS) <= day <= last}
    if len(shown) < 2:
        return None
    first = min(shown)
    length = (last - first).days + 1
    days = 1 if length <= BARS else 7 * -(-length // (7 * BARS))
    first -= timedelta(days=first.weekday() if days > 1 else 0)
    summed = Counter[int]()
    for day, sessions in shown.items():
        summed[(day - first).days // days] += sessions
    most = max(summed.values())
    slots = range((last - first).days // days + 1)
    bars = [_bar(first + timedelta(days=days * slot), days, last, summed[slot], slot, most) for slot in slots]
    return Timeline(bars, len(slots) * STEP, first.isoformat(), last.isoformat(), days)


def _bar(first: date, days: int, today: date, sessions: int, slot: int, most: int) -> Bar:
    last = min(first + timedelta(days=days - 1), today)
    label = called(first) if days == 1 else f"{called(first)} to {called(last)}"
    height = _LEAST + (HEIGHT - _LEAST) * sessions / most if sessions else 0.0
    return Bar(first.isoformat(), last.isoformat(), label, sessions, slot * STEP, round(height, 1))


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
