"""Scores: they fall with age, rise with use, are bounded and finite, pins do not decay; what a sweep promotes."""

from __future__ import annotations

from math import isfinite

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signet_sync.formats.statement import SECTION_OF
from signet_sync.formats.timestamps import DAY, parse_instant
from signet_sync.memories.score import (
    HALF_LIVES,
    REMEMBERED,
    SIGNALS,
    WEIGHTS,
    Totals,
    day_start,
    passes,
    rank,
    score,
    sweep_id,
    weigh,
)

NOW = 20_000 * DAY

KINDS = st.sampled_from([*WEIGHTS, "unheard-of"])
INSTANTS = st.integers(-(1 << 63), (1 << 63) - 1)
COUNTS = st.one_of(st.integers(0, 50), st.integers(-5, 1 << 70))
ACCESS = st.one_of(st.none(), INSTANTS)


def of(kind="decision", age=0.0, *, uses=0, last=None, pinned=False, **given_):
    """The score of something so many days old, with the last access so many days ago."""
    return score(
        kind, int(NOW - age * DAY), NOW, accesses=uses,
        last_access_us=None if last is None else int(NOW - last * DAY), pinned=pinned, **given_,
    )  # fmt: skip


def test_every_kind_has_a_weight_and_a_half_life():
    assert set(WEIGHTS) == set(HALF_LIVES) == {*SECTION_OF, "tried", "thread"}
    assert all(0 < weight <= REMEMBERED for weight in WEIGHTS.values())
    assert max(WEIGHTS, key=WEIGHTS.__getitem__) == "thread"


@pytest.mark.parametrize("kind", ["thread", "preference"])
def test_the_formula_by_hand(kind):
    weight, half_life = WEIGHTS[kind], HALF_LIVES[kind]
    assert of(kind) == weight
    assert of(kind, half_life) == pytest.approx(weight / 2)
    assert of(kind, 2 * half_life) == pytest.approx(weight / 4)
    # Three accesses are two doublings: half as much again, today; a quarter a month later.
    assert of(kind, half_life, uses=3, last=0) == pytest.approx(weight / 2 * 1.5)
    assert of(kind, half_life, uses=3, last=30) == pytest.approx(weight / 2 * 1.25)
    assert of(kind, 1000, uses=3, last=500, pinned=True) == pytest.approx(weight * 1.5)
    assert of(kind, half_life, remembered=True) == pytest.approx(REMEMBERED / 2)


def test_a_day_begins_at_midnight_utc_also_before_1970():
    assert day_start(NOW) == day_start(NOW + DAY - 1) == NOW
    assert day_start(-1) == -DAY


@given(KINDS, INSTANTS, INSTANTS, COUNTS, ACCESS, st.booleans(), st.booleans())
@example("note", -(1 << 63), (1 << 63) - 1, 1 << 70, -(1 << 63), False, False)
def test_a_score_is_finite_and_bounded_whatever_it_is_made_from(kind, at, now, uses, last, pinned, remembered):
    given_ = {"accesses": uses, "last_access_us": last, "remembered": remembered}
    value = score(kind, at, now, pinned=pinned, **given_)
    assert isfinite(value) and 0 <= value <= 6.001 * REMEMBERED
    assert value <= score(kind, at, now, pinned=True, **given_)


@given(KINDS, INSTANTS, *([INSTANTS] * 4), COUNTS, COUNTS)
def test_what_is_newer_used_more_or_used_later_is_never_worth_less(kind, now, at, newer, last, later, uses, more):
    (at, newer), (last, later), (uses, more) = (sorted(pair) for pair in ((at, newer), (last, later), (uses, more)))
    value = score(kind, at, now, accesses=uses, last_access_us=last)
    assert value <= score(kind, newer, now, accesses=uses, last_access_us=last)
    assert value <= score(kind, at, now, accesses=more, last_access_us=last)
    assert value <= score(kind, at, now, accesses=uses, last_access_us=later)


def test_the_ranking():
    entries = {
        "pinned, worth little": rank(0.1, 1, "b", pinned=True),
        "the highest": rank(0.9, 1, "b", pinned=False),
        "as high as the next, newer": rank(0.5, 2, "z", pinned=False),
        "as high, first id": rank(0.5, 1, "a", pinned=False),
        "as high, second id": rank(0.5, 1, "b", pinned=False),
        "the lowest": rank(0.4, 9, "a", pinned=False),
    }
    assert sorted(entries, key=entries.__getitem__) == list(entries)


# ── promotion ──


def hits(count: int, queries: int = 1, days: int = 1, mean: float = 1.0, age: float = 0.0) -> Totals:
    return Totals(count, count * mean, NOW - int(age * DAY), queries, days)


@pytest.mark.parametrize(("total", "expected"), [
    (hits(1), {"frequency": 0.3562, "recency": 1, "diversity": 0.2, "unique_days": 1}),
    (hits(5), {"frequency": 0.9208, "recall_count": 5}),
    (hits(6), {"frequency": 1.0}),
    (Totals(3, 1.5, NOW, 1, 1), {"relevance": 0.5}),
    (hits(9, 4), {"diversity": 0.8}),
    (hits(9, 5), {"diversity": 1.0}),
    # The original takes the larger of queries and days (1.0 here), the specification distinct queries.
    (hits(5, 1, 5), {"diversity": 0.2, "unique_days": 5}),
    (hits(1, age=1), {"recency": 0.9057}),
    (hits(1, age=7), {"recency": 0.5}),
    (hits(1, age=-3), {"recency": 1}),  # a clock that was set back
    (hits(3, 3, 1, 1.0), {"score": 0.73098}),
    # With our half-life of a week instead of the original's ninety days, what is old weighs less.
    (hits(5, 3, 3, 0.5, age=3), {"score": 0.63244}),
    (hits(3, 2, 1, 0.1, age=180), {"score": 0.28098}),
    # Ours counts queries alone: the original has 0.68098 here, for three days count as three queries.
    (hits(3, 1, 3, 0.7), {"score": 0.62098}),
    (hits(6, 5, 5), {"score": 0.94}),
    (hits(6, 5, 6), {"score": sum(SIGNALS.values())}),
])  # fmt: skip
def test_signals_and_score_by_hand(total: Totals, expected: dict[str, float]) -> None:
    found = weigh("m-a", total, NOW)._asdict()
    assert {one: found[one] for one in expected} == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(("total", "rises"), [
    (hits(3, 2, 1), True), (hits(2, 2, 1), False), (hits(3, 2, 0), False), (hits(9, 7, 1), True),
    (hits(9, 1, 9), False),  # the original reads queries back from diversity, which days fill
    (hits(3, 2, 1, 0.2, age=200), False),
])  # fmt: skip
def test_what_a_memory_needs_to_rise(total: Totals, rises: bool) -> None:
    assert passes(weigh("m-a", total, NOW), 0.35) == rises


# ── ids of sweeps ──


@given(st.integers(0, 80_000 * DAY), st.integers(0, 80_000 * DAY))
def test_the_id_of_a_sweep_is_its_instant_and_in_the_order_of_time(one: int, other: int) -> None:
    at_us = parse_instant("2026-04-24T03:00:59.123456Z")
    assert at_us is not None and sweep_id(at_us) == "20260424T030059123Z"
    assert (sweep_id(one) < sweep_id(other)) == (one // 1000 < other // 1000)
