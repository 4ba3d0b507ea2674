"""What a sweep promotes: signals and score by hand and for every history of hits, the gates, and the order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recall_totals import totals

from benchmarks.remembered import RecallEvent
from signet_sync.formats.timestamps import DAY, parse_instant
from signet_sync.memories.promotion_score import (
    WEIGHTS,
    ZERO,
    Gates,
    Promotion,
    Totals,
    group_of,
    lacking,
    score,
    signals,
    sweep_id,
    weigh,
    weigh_signals,
)

NOW = 20_000 * DAY
GATES = Gates()

EVENTS = st.lists(
    st.builds(
        RecallEvent, st.sampled_from("abcdefg"), st.floats(0.001, 1.0), st.integers(NOW - 400 * DAY, NOW + 2 * DAY)
    ),
    max_size=30,
)
INSTANTS = st.integers(-(1 << 63), (1 << 63) - 1)
ANY_TOTALS = st.builds(
    Totals,
    hits=st.integers(-3, 1 << 62),
    score_sum=st.floats(-1e300, 1e300),
    last_us=INSTANTS,
    queries=st.integers(0, 1 << 62),
    days=st.integers(0, 1 << 62),
)


def hits(count: int, queries: int = 1, days: int = 1, mean: float = 1.0, age: float = 0.0) -> Totals:
    return Totals(count, count * mean, NOW - int(age * DAY), queries, days)


def candidate(name: str, *values: float, age: float = 0.0) -> Promotion:
    return weigh(name, hits(*values, age=age), NOW)  # type: ignore[arg-type]


# ── signals and score by hand ──

SIGNALS = {
    "nothing": (Totals(0, 0.0, 0, 0, 0), {"recall_count": 0, "frequency": 0, "relevance": 0, "recency": 0}),
    "one hit": (hits(1), {"frequency": 0.3562, "recency": 1, "diversity": 0.2, "unique_days": 1}),
    "five hits": (hits(5), {"frequency": 0.9208, "recall_count": 5}),
    "six hits are full": (hits(6), {"frequency": 1.0}),
    "more add nothing": (hits(50), {"frequency": 1.0}),
    "the mean of the scores": (Totals(3, 1.5, NOW, 1, 1), {"relevance": 0.5}),
    "four queries": (hits(9, 4), {"diversity": 0.8}),
    "five are full": (hits(9, 5), {"diversity": 1.0}),
    "six add nothing": (hits(9, 6), {"diversity": 1.0}),
    # The original takes the larger of queries and days (1.0 here), the specification distinct queries.
    "days of one query": (hits(5, 1, 5), {"diversity": 0.2, "unique_days": 5}),
    "a day ago": (hits(1, age=1), {"recency": 0.9057}),
    "a half-life ago": (hits(1, age=7), {"recency": 0.5}),
    "a month ago": (hits(1, age=30), {"recency": 0.0513}),
    "a clock that was set back": (hits(1, age=-3), {"recency": 1}),
}
SCORES = {
    "often and at the top": (hits(3, 3, 1, 1.0), 0.73098),
    "far down": (hits(3, 2, 1, 0.2), 0.46098),
    # With our half-life of a week instead of the original's ninety days, what is old weighs less.
    "on three days": (hits(5, 3, 3, 0.5, age=3), 0.63244),
    "half a year ago": (hits(3, 2, 1, 0.1, age=180), 0.28098),
    # Ours counts queries alone: the original has 0.68098 here, for three days count as three queries.
    "one query on three days": (hits(3, 1, 3, 0.7), 0.62098),
    "the best": (hits(6, 5, 5), 0.94),
}


@pytest.mark.parametrize("name", SIGNALS)
def test_signals_by_hand(name: str) -> None:
    found, expected = signals(SIGNALS[name][0], NOW)._asdict(), SIGNALS[name][1]
    assert {one: found[one] for one in expected} == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("name", SCORES)
def test_the_score_by_hand(name: str) -> None:
    assert score(signals(SCORES[name][0], NOW)) == pytest.approx(SCORES[name][1], abs=5e-6)
    assert score(ZERO) == 0 and sum(WEIGHTS.values()) == pytest.approx(0.94)
    assert [weigh_signals(ZERO._replace(unique_days=days))["consolidation"] for days in (0, 1, 5, 6)] == [0, 0.2, 1, 1]


def test_totals_count_texts_and_utc_days() -> None:
    events = [RecallEvent("tea", 1.0, NOW - 1), RecallEvent("Tea", 0.5, NOW), RecallEvent("tea", 0.25, NOW + DAY - 1)]
    assert totals(events) == totals(events[::-1]) == Totals(3, 1.75, NOW + DAY - 1, 2, 2)


# ── for every history ──


@given(ANY_TOTALS, INSTANTS, st.integers(0, 1 << 62))
def test_signals_and_score_are_bounded_and_time_moves_only_recency_down(total: Totals, now_us: int, later: int) -> None:
    early, late = signals(total, now_us), signals(total, now_us + later)
    assert all(0 <= value <= 1 for value in (early.frequency, early.relevance, early.recency, early.diversity))
    assert 0 <= score(early) <= sum(WEIGHTS.values()) * (1 + 1e-12)
    assert late.recency <= early.recency
    assert late._replace(recency=0) == early._replace(recency=0)


@given(EVENTS, st.builds(RecallEvent, st.sampled_from("abcxyz"), st.floats(0.001, 1.0), st.integers(NOW - DAY, NOW)))
def test_one_more_hit_lowers_no_signal_but_relevance(events: list[RecallEvent], more: RecallEvent) -> None:
    before, after = signals(totals(events), NOW), signals(totals([*events, more]), NOW)
    assert after.recall_count == before.recall_count + 1
    for name in ("frequency", "recency", "diversity", "unique_days"):
        assert getattr(after, name) >= getattr(before, name)


# ── gates ──


@pytest.mark.parametrize("short", [{"recall_count": 4}, {"queries": 3}, {"unique_days": 3}, {"score": 0.71}], ids=str)
def test_each_gate_alone_holds_a_memory_back(short: dict[str, float]) -> None:
    memory = candidate("m-a", 3, 2, 2)._replace(score=0.7)
    assert not lacking(memory, Gates(3, 2, 2, 0.7))
    assert len(lacking(memory, Gates(3, 2, 2, 0.7)._replace(**short))) == 1


def test_what_it_lacks_in_words() -> None:
    """The original reads queries back from diversity, which days fill, and looks at no days."""
    many, daily = candidate("m-a", 9, 7, 1), candidate("m-b", 9, 1, 9)
    assert lacking(many, Gates(queries=7)) == () and lacking(daily, GATES) == ("1 more query",)
    assert lacking(many, Gates(unique_days=2)) == ("1 more day",)
    assert lacking(candidate("m-c", 1, 1, 1), GATES) == ("2 more hits", "1 more query")
    assert lacking(candidate("m-d", 3, 2, 1, 0.2, age=200), GATES) == ("a score of 0.35",)


# ── ids of sweeps ──


@given(st.integers(0, 80_000 * DAY), st.integers(0, 80_000 * DAY))
def test_the_id_of_a_sweep_is_its_instant_and_in_the_order_of_time(one: int, other: int) -> None:
    at_us = parse_instant("2026-04-24T03:00:59.123456Z")
    assert at_us is not None and sweep_id(at_us) == "20260424T030059123Z"
    assert group_of(sweep_id(at_us)) == "2026-04-24 03:00 UTC"
    assert (sweep_id(one) < sweep_id(other)) == (one // 1000 < other // 1000)


@pytest.mark.parametrize(
    "text", ["", "20260424", "20260424T030000Z", "2026-04-24T03:00:00.000Z", "x0260424T030000000Z"]
)
def test_what_is_no_id_of_a_sweep_has_no_heading(text: str) -> None:
    with pytest.raises(ValueError, match="not the id of a sweep"):
        group_of(text)
