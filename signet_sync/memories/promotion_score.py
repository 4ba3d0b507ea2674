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

# More hits or distinct queries than these do not raise frequency or diversity.
FULL_HITS = 6
FULL_QUERIES = 5
# Days after which the last hit of a memory counts half as recent.
RECENCY_HALF_LIFE = 7.0


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


def signals(totals: Totals, now_us: int) -> Signals:
    """Computes the signals of a memory at `now_us`, in microseconds since 1970 UTC; `ZERO` without hits.

    Frequency is `ln(1 + hits) / ln 7` and diversity `queries / 5`, both at most 1; relevance is the mean score; recency
    halves with every half-life since the last hit, and is 1 for a hit in the future. Source: seed 004; unlike in the
    program described there, several days of one query are not diversity (`docs/internals/conformance.md`).
    """
    if totals.hits <= 0:
        return ZERO
    return Signals(
        recall_count=totals.hits,
        frequency=min(1.0, math.log1p(totals.hits) / math.log1p(FULL_HITS)),
        relevance=min(1.0, max(0.0, totals.score_sum / totals.hits)),
        recency=decay(now_us - totals.last_us, RECENCY_HALF_LIFE),
        diversity=min(1.0, totals.queries / FULL_QUERIES),
        unique_days=totals.days,
    )


# ── score ──

# A memory that was found on this many days is consolidated; more days add nothing.
FULL_DAYS = 5

_SWEEP_ID = late(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)\d{5}Z", re.ASCII)


# The most that each signal adds to the score: 0.94 in all.
WEIGHTS = {"frequency": 0.24, "relevance": 0.30, "recency": 0.15, "diversity": 0.15, "consolidation": 0.10}


class Gates(NamedTuple):
    """What a memory must reach: hits, distinct queries, distinct days, score."""

    recall_count: int = 3
    queries: int = 2
    unique_days: int = 1
    score: float = 0.35


class Promotion(NamedTuple):
    """A memory that a sweep promotes or considers, with its signals at that time; `last_us` is its last hit."""

    memory_id: str
    score: float
    signals: Signals
    queries: int
    last_us: int


def weigh_signals(signals: Signals) -> dict[str, float]:
    """Returns the signals that count in the score, from 0 to 1, with how consolidated a memory is by its days."""
    values = signals.frequency, signals.relevance, signals.recency, signals.diversity
    return dict(zip(WEIGHTS, (*values, min(1.0, signals.unique_days / FULL_DAYS)), strict=True))


def score(signals: Signals) -> float:
    """Returns the dream score: the weighted sum of the signals, from 0 to the sum of the weights."""
    return sum(WEIGHTS[name] * value for name, value in weigh_signals(signals).items())


def lacking(memory: Promotion, gates: Gates) -> tuple[str, ...]:
    """Lists what a memory lacks, gate by gate (`1 more query`); empty if it passes."""
    counts = (
        ("hit", "hits", gates.recall_count - memory.signals.recall_count),
        ("query", "queries", gates.queries - memory.queries),
        ("day", "days", gates.unique_days - memory.signals.unique_days),
    )
    lacks = [f"{count_noun(missing, f'more {one}', f'more {many}')}" for one, many, missing in counts if missing > 0]
    if memory.score < gates.score:
        lacks.append(f"a score of {gates.score:.2f}")
    return tuple(lacks)


def weigh(memory_id: str, totals: Totals, now_us: int) -> Promotion:
    """Returns a memory with its values at `now_us` (microseconds since 1970 UTC)."""
    found = signals(totals, now_us)
    return Promotion(memory_id, score(found), found, totals.queries, totals.last_us)


def order(memory: Promotion) -> tuple[float, int, str]:
    """Returns a sort key: the best first; ties by the last hit, newest first, then by id, the same on every machine."""
    return -memory.score, -memory.last_us, memory.memory_id


def sweep_id(now_us: int) -> str:
    """Returns the id of a sweep at this instant, `20260424T030000000Z`; ids sort by time."""
    return iso(now_us).translate(_WITHOUT_MARKS)


_WITHOUT_MARKS = str.maketrans("", "", "-:.")


def group_of(sweep_id: str) -> str:
    """Formats a sweep's time for a heading: `2026-04-24 03:00 UTC`. Raises `ValueError` for an invalid sweep id."""
    match = _SWEEP_ID.fullmatch(sweep_id)
    if match is None:
        raise ValueError(f"not the id of a sweep: {sweep_id!r}")
    year, month, day, hour, minute = match.groups()
    return f"{year}-{month}-{day} {hour}:{minute} UTC"


# ── what pages show ──


class Dream(NamedTuple):
    """A memory as it was promoted; when that was, and when a person took it back, if so (µs since 1970 UTC)."""

    memory: Promotion
    text: str
    at_us: int
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
    dreams: Sequence[Dream]
