"""Computes a strip of bars: the sessions of each of the last 90 days. Pure."""

from __future__ import annotations

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


def day_bars(counts: Mapping[str, int], today: str) -> list[DayBar]:
    """Returns the bars from the earliest day to `today`; `counts` are sessions by day."""
    last = date.fromisoformat(today)
    days = [last - timedelta(days=before) for before in reversed(range(DAYS))]
    most = max((counts.get(day.isoformat(), 0) for day in days), default=0)
    bars = []
    for day in days:
        sessions = counts.get(day.isoformat(), 0)
        height = _LEAST + (HEIGHT - _LEAST) * sessions / most if sessions else 0.0
        bars.append(DayBar(day.isoformat(), called(day), sessions, round(height, 1)))
    return bars
