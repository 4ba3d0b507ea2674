"""Computes a strip of bars: the sessions of each of the last 90 days. Pure."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import NamedTuple

from signet_sync.web.dates import called

DAYS = 90
HEIGHT = 40  # of the strip, which is 10 wide for each day
_LEAST = 3.0  # height of a bar with one session


class DayBar(NamedTuple):
    """A day (`YYYY-MM-DD`), its name, its sessions, and the height of its bar."""

    day: str
    label: str
    sessions: int
    height: float


def shown_days(today: str) -> list[str]:
    """Returns the days that have bars, the earliest first."""
    last = date.fromisoformat(today)
    return [(last - timedelta(days=before)).isoformat() for before in reversed(range(DAYS))]


def day_bars(counts: Mapping[str, int], today: str) -> list[DayBar]:
    """Returns the bars from the earliest day to `today`; `counts` are sessions by day."""
    days = shown_days(today)
    most = max((counts.get(day, 0) for day in days), default=0)
    bars = []
    for day in days:
        sessions = counts.get(day, 0)
        height = _LEAST + (HEIGHT - _LEAST) * sessions / most if sessions else 0.0
        bars.append(DayBar(day, called(date.fromisoformat(day)), sessions, round(height, 1)))
    return bars
