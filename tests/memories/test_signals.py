"""Recall signals: the formulas by hand, the original's conformance list, and what holds for every history of hits."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_totals import totals

from benchmarks.remembered import RecallEvent
from signet_sync.formats.timestamps import DAY
from signet_sync.memories.signals import ZERO, Totals, signals

NOW = 20_000 * DAY
HOUR = DAY // 24

EVENTS = st.lists(
    st.builds(
        RecallEvent, st.sampled_from("abcdefg"), st.floats(0.001, 1.0), st.integers(NOW - 400 * DAY, NOW + 2 * DAY)
    ),
    max_size=30,
)
ANY_TOTALS = st.builds(
    Totals,
    hits=st.integers(-3, 1 << 62),
    score_sum=st.floats(-1e300, 1e300),
    last_us=st.integers(-(1 << 63), (1 << 63) - 1),
    queries=st.integers(0, 1 << 62),
    days=st.integers(0, 1 << 62),
)
LIVES = st.one_of(st.sampled_from([0.0, -1.0, 5e-324, math.inf, math.nan]), st.floats(0.01, 36_500))


def hits(count, *, queries=1, days=1, mean=1.0, age=0.0) -> Totals:
    return Totals(count, count * mean, NOW - int(age * DAY), queries, days)


def at(totals, now_us=NOW, half_life=7.0):
    return signals(totals, now_us, half_life)


# ── the original's tests, by their names ──


def test_empty_events_yield_zero_signals():
    assert at(totals([])) == ZERO
    assert ZERO.recall_count == 0 and ZERO.frequency == 0


def test_frequency_log_normalizes_monotonically():
    one, five, fifty = (at(hits(count)).frequency for count in (1, 5, 50))
    assert one < five < fifty <= 1


def test_recency_decays_with_distance():
    assert at(hits(1)).recency == pytest.approx(1, abs=1e-4)
    assert at(hits(1, age=7)).recency == pytest.approx(0.5, abs=1e-2)
    assert at(hits(1, age=30)).recency < 0.1


def test_diversity_counts_distinct_queries_and_days():
    same = totals([RecallEvent("tea", 1.0, NOW + hour * HOUR) for hour in range(3)])
    varied = totals([RecallEvent(f"tea {day}", 1.0, NOW - day * DAY) for day in range(5)])
    assert at(same).diversity < at(varied).diversity == 1.0
    assert at(varied).unique_days == 5


def test_relevance_is_mean_of_scores():
    assert at(totals([RecallEvent("tea", score, NOW) for score in (0.2, 0.8, 0.5)])).relevance == pytest.approx(0.5)


# ── worked values ──


@pytest.mark.parametrize(
    ("count", "frequency"), [(1, 0.3562), (2, 0.5646), (3, 0.7124), (4, 0.8271), (5, 0.9208), (6, 1.0), (7, 1.0)]
)
def test_frequency_is_full_at_six_hits(count, frequency):
    assert at(hits(count)).frequency == pytest.approx(frequency, abs=5e-5)


@pytest.mark.parametrize(
    ("half_life", "age", "recency"),
    [
        *[(7, 1, 0.9057), (7, 7, 0.5), (7, 14, 0.25), (7, 30, 0.0513)],
        *[(90, 1, 0.9923), (90, 7, 0.9475), (90, 30, 0.7937), (90, 90, 0.5), (90, 180, 0.25)],
    ],
)
def test_recency_by_half_life(half_life, age, recency):
    assert at(hits(1, age=age), half_life=half_life).recency == pytest.approx(recency, abs=5e-5)


@pytest.mark.parametrize("half_life", [0, -7, math.nan])
def test_without_a_half_life_recency_counts_for_nothing(half_life):
    assert at(hits(1), half_life=half_life).recency == 0


def test_a_clock_that_was_set_back_makes_a_hit_no_newer_than_now():
    assert at(hits(1, age=-3)).recency == at(hits(1)).recency == 1


def test_days_of_the_same_query_are_no_diversity():
    """The original takes the larger of queries and days (1.0 here), the specification distinct queries."""
    daily = totals([RecallEvent("tea", 1.0, NOW - day * DAY) for day in range(5)])
    assert (at(daily).diversity, at(daily).unique_days) == (0.2, 5)


@pytest.mark.parametrize(("queries", "diversity"), [(1, 0.2), (2, 0.4), (4, 0.8), (5, 1.0), (6, 1.0)])
def test_diversity_is_full_at_five_queries(queries, diversity):
    assert at(hits(9, queries=queries)).diversity == diversity


def test_totals_count_texts_and_utc_days():
    midnight = NOW - NOW % DAY
    events = [
        RecallEvent("tea", 1.0, midnight - 1),
        RecallEvent("Tea", 0.5, midnight),
        RecallEvent("tea", 0.25, midnight + DAY - 1),
    ]
    assert totals(events) == Totals(3, 1.75, midnight + DAY - 1, 2, 2)
    assert totals([]) == Totals(0, 0.0, 0, 0, 0)


# ── for every history ──


@given(ANY_TOTALS, st.integers(-(1 << 63), (1 << 63) - 1), LIVES)
def test_signals_lie_from_zero_to_one_whatever_they_are_made_from(total, now, half_life):
    found = signals(total, now, half_life)
    assert all(0 <= value <= 1 for value in (found.frequency, found.relevance, found.recency, found.diversity))


@given(EVENTS, st.builds(RecallEvent, st.sampled_from("abcxyz"), st.floats(0.001, 1.0), st.integers(NOW - DAY, NOW)))
def test_one_more_hit_lowers_no_signal_but_relevance(events, more):
    before, after = at(totals(events)), at(totals([*events, more]))
    assert after.recall_count == before.recall_count + 1
    assert after.frequency >= before.frequency
    assert after.recency >= before.recency
    assert after.diversity >= before.diversity
    assert after.unique_days >= before.unique_days


@given(ANY_TOTALS, st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, 1 << 62), LIVES)
def test_time_raises_no_signal_and_moves_only_recency(total, now, later, half_life):
    early, late = signals(total, now, half_life), signals(total, now + later, half_life)
    assert late.recency <= early.recency
    assert late._replace(recency=0) == early._replace(recency=0)


@given(EVENTS, st.randoms(use_true_random=False))
def test_the_order_of_hits_does_not_matter(events, chance: random.Random):
    shuffled = list(events)
    chance.shuffle(shuffled)
    assert totals(shuffled) == totals(events)
