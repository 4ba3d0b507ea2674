"""Recall signals: how often, how far up, how lately, by how many queries and on how many days a memory was found."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from signet_sync.formats.timestamps import DAY
from signet_sync.memories.score import decay

# More hits, or more distinct queries, than these add nothing to frequency and diversity.
FULL_HITS = 6
FULL_QUERIES = 5


class Event(NamedTuple):
    """One hit of `recall` on a memory: the query as stored, its score (0 to 1), microseconds since 1970 UTC."""

    query: str
    score: float
    at_us: int


class Totals(NamedTuple):
    """What is counted of a memory's events: hits, sum of scores, last hit (µs), distinct queries, distinct UTC days."""

    hits: int
    score_sum: float
    last_us: int
    queries: int
    days: int


class Signals(NamedTuple):
    """What the totals say at an instant: `recall_count` and `unique_days` are counts, the others lie in [0, 1]."""

    recall_count: int
    frequency: float
    relevance: float
    recency: float
    diversity: float
    unique_days: int


ZERO = Signals(0, 0.0, 0.0, 0.0, 0.0, 0)


def totals(events: Iterable[Event]) -> Totals:
    """The totals of a memory's events, in any order: what the SQL of the index is held to. Without events, all zero.

    Queries are distinct as texts, days as UTC days.
    """
    seen = list(events)
    return Totals(
        hits=len(seen),
        score_sum=math.fsum(event.score for event in seen),
        last_us=max((event.at_us for event in seen), default=0),
        queries=len({event.query for event in seen}),
        days=len({event.at_us // DAY for event in seen}),
    )


def signals(totals: Totals, now_us: int, half_life_days: float) -> Signals:
    """The signals of a memory at `now_us`, in microseconds since 1970 UTC; `ZERO` where nothing found it.

    Frequency is `ln(1 + hits) / ln 7` and diversity `queries / 5`, both at most 1; relevance the mean score; recency
    halves with every half-life since the last hit, is 1 for a hit yet to come and 0 without a half-life. Source: seed
    004; unlike the program that it describes, days of the same query are no diversity (docs/conformance.md).
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
