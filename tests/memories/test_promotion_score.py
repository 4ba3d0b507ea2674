"""What a sweep promotes: signals and score by hand and for every history of hits, the gates, and the order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_event import RecallEvent

from signet_sync.formats.timestamps import DAY, parse_instant
from signet_sync.memories.promotion_score import WEIGHTS, Promotion, Totals, group_of, lacking, sweep_id, weigh

NOW = 20_000 * DAY
QUERIES, SCORES, INSTANTS = st.sampled_from("abcdefg"), st.floats(0.001, 1.0), st.integers(-(1 << 63), (1 << 63) - 1)
EVENTS = st.lists(
    st.builds(RecallEvent, QUERIES, SCORES, st.integers(NOW - 400 * DAY, NOW + 2 * DAY)), min_size=1, max_size=30
)
LARGE = st.integers(1, 1 << 62)
ANY_TOTALS = st.builds(Totals, LARGE, st.floats(-1e300, 1e300), INSTANTS, queries=LARGE, days=LARGE)


def hits(count: int, queries: int = 1, days: int = 1, mean: float = 1.0, age: float = 0.0) -> Totals:
    return Totals(count, count * mean, NOW - int(age * DAY), queries, days)


@pytest.mark.parametrize(("total", "expected"), [
    (hits(1), {"frequency": 0.3562, "recency": 1, "diversity": 0.2, "unique_days": 1}),
    (hits(5), {"frequency": 0.9208, "recall_count": 5}),
    (hits(6), {"frequency": 1.0}),
    (hits(50), {"frequency": 1.0}),
    (Totals(3, 1.5, NOW, 1, 1), {"relevance": 0.5}),
    (hits(9, 4), {"diversity": 0.8}),
    (hits(9, 5), {"diversity": 1.0}),
    (hits(9, 6), {"diversity": 1.0}),
    # The original takes the larger of queries and days (1.0 here), the specification distinct queries.
    (hits(5, 1, 5), {"diversity": 0.2, "unique_days": 5}),
    (hits(1, age=1), {"recency": 0.9057}),
    (hits(1, age=7), {"recency": 0.5}),
    (hits(1, age=30), {"recency": 0.0513}),
    (hits(1, age=-3), {"recency": 1}),  # a clock that was set back
    (hits(3, 3, 1, 1.0), {"score": 0.73098}),
    (hits(3, 2, 1, 0.2), {"score": 0.46098}),
    # With our half-life of a week instead of the original's ninety days, what is old weighs less.
    (hits(5, 3, 3, 0.5, age=3), {"score": 0.63244}),
    (hits(3, 2, 1, 0.1, age=180), {"score": 0.28098}),
    # Ours counts queries alone: the original has 0.68098 here, for three days count as three queries.
    (hits(3, 1, 3, 0.7), {"score": 0.62098}),
    (hits(6, 5, 5), {"score": 0.94}),
    (hits(6, 5, 6), {"score": sum(WEIGHTS.values())}),
])  # fmt: skip
def test_signals_and_score_by_hand(total: Totals, expected: dict[str, float]) -> None:
    found = weigh("m-a", total, NOW)._asdict()
    assert {one: found[one] for one in expected} == pytest.approx(expected, abs=5e-5)


@given(ANY_TOTALS, INSTANTS, st.integers(0, 1 << 62))
def test_signals_and_score_are_bounded_and_time_moves_only_recency_down(total: Totals, now_us: int, later: int) -> None:
    early, late = weigh("m", total, now_us), weigh("m", total, now_us + later)
    assert all(0 <= value <= 1 for value in (early.frequency, early.relevance, early.recency, early.diversity))
    assert 0 <= early.score <= sum(WEIGHTS.values()) * (1 + 1e-12)
    assert late.recency <= early.recency and late.score <= early.score
    assert late._replace(recency=0, score=0) == early._replace(recency=0, score=0)


@pytest.mark.parametrize(("total", "lacks"), [
    (hits(3, 2, 1), ()), (hits(2, 2, 1), ("1 more hit",)), (hits(1, 1, 1), ("2 more hits", "1 more query")),
    (hits(3, 2, 0), ("1 more day",)), (hits(9, 7, 1), ()),
    (hits(9, 1, 9), ("1 more query",)),  # the original reads queries back from diversity, which days fill
    (hits(3, 2, 1, 0.2, age=200), ("a score of 0.35",)),
])  # fmt: skip
def test_what_a_memory_lacks_gate_by_gate(total: Totals, lacks: tuple[str, ...]) -> None:
    found: Promotion = weigh("m-a", total, NOW)
    assert lacking(found, 0.35) == lacks


# ── ids of sweeps ──


@given(st.integers(0, 80_000 * DAY), st.integers(0, 80_000 * DAY))
def test_the_id_of_a_sweep_is_its_instant_and_in_the_order_of_time(one: int, other: int) -> None:
    at_us = parse_instant("2026-04-24T03:00:59.123456Z")
    assert at_us is not None and sweep_id(at_us) == "20260424T030059123Z"
    assert group_of(sweep_id(at_us)) == "2026-04-24 03:00 UTC"
    assert (sweep_id(one) < sweep_id(other)) == (one // 1000 < other // 1000)
