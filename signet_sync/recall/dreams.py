"""Dreaming: which memories a sweep promotes, by a score of their recall signals and by gates; no model is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from heapq import nsmallest
from typing import NamedTuple

from signet_sync.contracts.timestamps import iso
from signet_sync.recall.signals import Signals, Totals, signals

# A memory that was found on so many days is consolidated; more add nothing.
FULL_DAYS = 5

_SWEEP_ID = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)\d{5}Z", re.ASCII)


class Weights(NamedTuple):
    """What each signal adds to the score at most; these add up to 0.94, so no score of theirs is above it."""

    frequency: float = 0.24
    relevance: float = 0.30
    recency: float = 0.15
    diversity: float = 0.15
    consolidation: float = 0.10


WEIGHTS = Weights()


class Gates(NamedTuple):
    """What a memory must reach to be promoted (hits, distinct queries, distinct days, score), and how many at most."""

    recall_count: int = 3
    queries: int = 2
    unique_days: int = 1
    score: float = 0.35
    most: int = 20


class Candidate(NamedTuple):
    """A memory that was found and is not promoted yet."""

    memory_id: str
    totals: Totals


class Promotion(NamedTuple):
    """A memory that a sweep promotes, with the signals as they were; `last_us` is its last hit."""

    memory_id: str
    score: float
    signals: Signals
    queries: int
    last_us: int


def consolidation(signals: Signals) -> float:
    """How far the days on which a memory was found have settled it, from 0 to 1."""
    return min(1.0, signals.unique_days / FULL_DAYS)


def score(signals: Signals, weights: Weights = WEIGHTS) -> float:
    """The dream score: the weighted sum of the signals, from 0 to the sum of the weights (seed 004)."""
    return (
        weights.frequency * signals.frequency
        + weights.relevance * signals.relevance
        + weights.recency * signals.recency
        + weights.diversity * signals.diversity
        + weights.consolidation * consolidation(signals)
    )


def passes(signals: Signals, queries: int, value: float, gates: Gates) -> bool:
    """Whether every gate holds; `queries` is the number of distinct queries, uncapped, `value` the score."""
    return (
        signals.recall_count >= gates.recall_count
        and queries >= gates.queries
        and signals.unique_days >= gates.unique_days
        and value >= gates.score
    )


def choose(
    candidates: Iterable[Candidate], now_us: int, *, half_life_days: float, gates: Gates, weights: Weights
) -> list[Promotion]:
    """What a sweep at `now_us` (microseconds since 1970 UTC) promotes: the best that pass all gates, best first.

    Equal scores go by the last hit, the newest first, then by id, so that the order of the candidates never matters.
    """

    def worthy() -> Iterator[Promotion]:
        for memory_id, totals in candidates:
            found = signals(totals, now_us, half_life_days)
            value = score(found, weights)
            if passes(found, totals.queries, value, gates):
                yield Promotion(memory_id, value, found, totals.queries, totals.last_us)

    return nsmallest(gates.most, worthy(), key=lambda one: (-one.score, -one.last_us, one.memory_id))


def sweep_id(now_us: int) -> str:
    """The id of the sweep of an instant, `20260424T030000000Z`: as texts, ids are in the order of time."""
    return iso(now_us).translate(_WITHOUT_MARKS)


_WITHOUT_MARKS = str.maketrans("", "", "-:.")


def group_of(sweep_id: str) -> str:
    """When a sweep was, as a heading says it: `2026-04-24 03:00 UTC`. ValueError where the text is no sweep's id."""
    match = _SWEEP_ID.fullmatch(sweep_id)
    if match is None:
        raise ValueError(f"not the id of a sweep: {sweep_id!r}")
    year, month, day, hour, minute = match.groups()
    return f"{year}-{month}-{day} {hour}:{minute} UTC"
