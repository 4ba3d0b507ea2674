"""Names what pages show of promotions: a promoted memory, a sweep, and why a memory was promoted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class DreamedView(NamedTuple):
    """Why a memory was promoted: the heading of its sweep, its instant, and the score, hits and days it had then."""

    heading: str
    at_us: int
    score: float
    hits: int
    days: int


class DreamView(NamedTuple):
    """A promotion as it was; `text` is None if the memory was forgotten since.

    The signals from which the score was computed are between 0 and 1; `last_us` is the last hit, `undone_us` when a
    person took it back, if so (µs since 1970 UTC).
    """

    memory_id: str
    text: str | None
    score: float
    hits: int
    queries: int
    days: int
    last_us: int
    frequency: float
    relevance: float
    recency: float
    diversity: float
    consolidation: float
    undone_us: int | None = None


class SweepView(NamedTuple):
    """A sweep: its id and instant (µs since 1970 UTC), and how many memories it saw, passed over and promoted then.

    `dreams` are those of its promotions that are still known.
    """

    id: str
    at_us: int
    candidates: int
    skipped: int
    promoted: int
    dreams: Sequence[DreamView]
