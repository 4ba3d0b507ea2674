"""Computes recall signals of a memory: frequency, relevance, recency, diversity of queries, number of days."""

from __future__ import annotations

import math
from typing import NamedTuple

from signet_sync.memories.score import decay

# More hits or distinct queries than these do not raise frequency or diversity.
FULL_HITS = 6
FULL_QUERIES = 5


class Totals(NamedTuple):
    """Totals of a memory's events: hits, sum of scores, last hit (µs), distinct queries, distinct UTC days."""

    hits: int
    score_sum: float
    last_us: int
    queries: int
    days: int


class Signals(NamedTuple):
    """Signals at an instant: `recall_count` and `unique_days` are counts, the others are in [0, 1]."""

    recall_count: int
    frequency: float
    relevance: float
    recency: float
    diversity: float
    unique_days: int


ZERO = Signals(0, 0.0, 0.0, 0.0, 0.0, 0)


def signals(totals: Totals, now_us: int, half_life_days: float) -> Signals:
    """Computes the signals of a memory at `now_us`, in microseconds since 1970 UTC; `ZERO` without hits.

    Frequency is `ln(1 + hits) / ln 7` and diversity `queries / 5`, both at most 1; relevance is the mean score; recency
    halves with every half-life since the last hit, is 1 for a hit in the future and 0 without a half-life. Source: seed
    004; unlike in the program described there, several days of one query are not diversity
    (`docs/internals/conformance.md`).
    """
    if totals.hits <= 0:
        return ZERO
    return Signals(
        recall_count=totals.hits,
        frequency=min(1.0, math.log1p(totals.hits) / math.log1p(FULL_HITS)),
        relevance=min(1.0, max(0.0, totals.score_sum / totals.hits)),
        recency=decay(now_us - totals.last_us, half_life_days) if half_life_days > 0 else 0.0,
        diversity=min(1.0, totals.queries / FULL_QUERIES),
        unique_days=totals.days,
    )
