"""Chooses the memories that a sweep promotes, by a score of their recall signals and by gates; uses no model.

Also names what pages show of promotions.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import iso
from signet_sync.memories.score import decay
from signet_sync.text.phrases import count_noun

# More hits, distinct queries or days than these raise no signal: frequency, diversity, consolidation.
FULL_HITS, FULL_QUERIES, FULL_DAYS = 6, 5, 5
# Days after which the last hit of a memory counts half as recent.
RECENCY_HALF_LIFE = 7.0
# The most that each signal adds to the score: 0.94 in all.
WEIGHTS = {"frequency": 0.24, "relevance": 0.30, "recency": 0.15, "diversity": 0.15, "consolidation": 0.10}
# What a memory must reach, beside a score: hits, distinct queries, distinct days.
LEAST_HITS, LEAST_QUERIES, LEAST_DAYS = 3, 2, 1

_SWEEP_ID = late(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)\d{5}Z", re.ASCII)
_WITHOUT_MARKS = str.maketrans("", "", "-:.")


class Totals(NamedTuple):
    """Totals of a memory's events: hits, sum of scores, last hit (µs), distinct queries, distinct UTC days."""

    hits: int
    score_sum: float
    last_us: int
    queries: int
    days: int


class Promotion(NamedTuple):
    """A memory that a sweep promotes or considers, with its signals at that time; `last_us` is its last hit.

    `recall_count`, `unique_days` and `queries` are counts, the other signals are in [0, 1].
    """

    memory_id: str
    score: float
    recall_count: int
    frequency: float
    relevance: float
    recency: float
    diversity: float
    unique_days: int
    queries: int
    last_us: int

    @property
    def signals(self) -> dict[str, float]:
        """Returns the signals by name."""
        return dict(zip(self._fields[2:8], self[2:8], strict=True))


def weigh(memory_id: str, totals: Totals, now_us: int) -> Promotion:
    """Returns a memory, which has hits, with its signals and score at `now_us` (microseconds since 1970 UTC).

    Frequency is `ln(1 + hits) / ln 7` and diversity `queries / 5`, both at most 1; relevance is the mean score; recency
    halves with every half-life since the last hit, and is 1 for a hit in the future. The score is the weighted sum.
    Source: seed 004; unlike in the program described there, several days of one query are not diversity
    (`docs/internals/conformance.md`).
    """
    memory = Promotion(
        memory_id,
        score=0.0,
        recall_count=totals.hits,
        frequency=min(1.0, math.log1p(totals.hits) / math.log1p(FULL_HITS)),
        relevance=min(1.0, max(0.0, totals.score_sum / totals.hits)),
        recency=decay(now_us - totals.last_us, RECENCY_HALF_LIFE),
        diversity=min(1.0, totals.queries / FULL_QUERIES),
        unique_days=totals.days,
        queries=totals.queries,
        last_us=totals.last_us,
    )
    return memory._replace(score=sum(WEIGHTS[name] * value for name, value in weigh_signals(memory).items()))


def weigh_signals(memory: Promotion) -> dict[str, float]:
    """Returns the signals that count in the score, from 0 to 1, with how consolidated a memory is by its days."""
    values = memory.frequency, memory.relevance, memory.recency, memory.diversity
    return dict(zip(WEIGHTS, (*values, min(1.0, memory.unique_days / FULL_DAYS)), strict=True))


def lacking(memory: Promotion, least: float) -> tuple[str, ...]:
    """Lists what a memory lacks, gate by gate (`1 more query`), the `least` score last; empty if it passes."""
    counts = (
        ("hit", "hits", LEAST_HITS - memory.recall_count),
        ("query", "queries", LEAST_QUERIES - memory.queries),
        ("day", "days", LEAST_DAYS - memory.unique_days),
    )
    lacks = [count_noun(missing, f"more {one}", f"more {many}") for one, many, missing in counts if missing > 0]
    return (*lacks, *([f"a score of {least:.2f}"] if memory.score < least else ()))


def order(memory: Promotion) -> tuple[float, int, str]:
    """Returns a sort key: the best first; ties by the last hit, newest first, then by id, the same on every machine."""
    return -memory.score, -memory.last_us, memory.memory_id


def sweep_id(now_us: int) -> str:
    """Returns the id of a sweep at this instant, `20260424T030000000Z`; ids sort by time."""
    return iso(now_us).translate(_WITHOUT_MARKS)


def group_of(sweep_id: str) -> str:
    """Formats a sweep's time for a heading: `2026-04-24 03:00 UTC`. Raises `ValueError` for an invalid sweep id."""
    match = _SWEEP_ID.fullmatch(sweep_id)
    if match is None:
        raise ValueError(f"not the id of a sweep: {sweep_id!r}")
    year, month, day, hour, minute = match.groups()
    return f"{year}-{month}-{day} {hour}:{minute} UTC"


# ── what pages show ──


class Dream(NamedTuple):
    """A memory as it was promoted, and when that was (µs since 1970 UTC)."""

    memory: Promotion
    text: str
    at_us: int


class SweepView(NamedTuple):
    """A sweep: its id and instant (µs since 1970 UTC), and how many memories it saw, passed over and promoted then.

    `dreams` are those of its promotions that are still known.
    """

    id: str
    at_us: int
    candidates: int
    skipped: int
    promoted: int
    dreams: Sequence[Dream]
