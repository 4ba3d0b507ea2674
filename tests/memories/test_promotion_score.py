"""What a sweep promotes: the score by hand, the gates one by one, the original's conformance list, and the order."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.formats.timestamps import DAY, parse_instant
from signet_sync.memories.promotion_score import (
    WEIGHTS,
    Gates,
    Promotion,
    SignalWeights,
    choose,
    consolidation,
    group_of,
    lacking,
    nearest,
    score,
    sweep_id,
    weigh,
)
from signet_sync.memories.signals import ZERO, Totals, signals

NOW = 20_000 * DAY


class PromotionCandidate(NamedTuple):
    memory_id: str
    totals: Totals


GATES = Gates()

TOTALS = st.integers(1, 12).flatmap(
    lambda hits: st.builds(
        Totals,
        hits=st.just(hits),
        score_sum=st.integers(1, 8).map(lambda eighths: hits * eighths / 8),
        last_us=st.integers(0, 60).map(lambda days: NOW - days * DAY),
        queries=st.integers(1, hits),
        days=st.integers(1, hits),
    )
)
CANDIDATES = st.lists(TOTALS, max_size=12).map(
    lambda every: [PromotionCandidate(f"m-{number}", one) for number, one in enumerate(every)]
)
CHOSEN_BY = st.builds(
    Gates,
    recall_count=st.integers(1, 6),
    queries=st.integers(1, 7),
    unique_days=st.integers(1, 4),
    score=st.floats(0, 0.9),
    most=st.integers(0, 6),
)


def hits(count, queries, days, mean, age=0.0) -> Totals:
    return Totals(count, count * mean, NOW - int(age * DAY), queries, days)


def value(totals, half_life=7.0, weights=WEIGHTS):
    return score(signals(totals, NOW, half_life), weights)


def weighed(candidates, weights=WEIGHTS, half_life=7.0):
    return [weigh(*one, NOW, half_life, weights) for one in candidates]


def chosen(candidates, *, gates=GATES, weights=WEIGHTS, half_life=7.0):
    return choose(weighed(candidates, weights, half_life), gates)


def ids(promotions):
    return [promotion.memory_id for promotion in promotions]


# ── the original's tests, by their names: what of them is decided at the desk ──


def test_score_respects_configured_weights():
    only = SignalWeights(0, 1, 0, 0, 0)
    assert value(hits(5, 3, 2, 0.42), weights=only) == pytest.approx(0.42)


# ── worked values ──

WORKED = {
    "often and at the top": (hits(3, 3, 1, 1.0), 90, 0.73098),
    "far down": (hits(3, 2, 1, 0.2), 90, 0.46098),
    "on three days": (hits(5, 3, 3, 0.5, age=3), 90, 0.66756),
    "half a year ago": (hits(3, 2, 1, 0.1, age=180), 90, 0.31848),
    # With our half-life of a week instead of the original's ninety days, what is old weighs less.
    "often and at the top, ours": (hits(3, 3, 1, 1.0), 7, 0.73098),
    "on three days, ours": (hits(5, 3, 3, 0.5, age=3), 7, 0.63244),
    "half a year ago, ours": (hits(3, 2, 1, 0.1, age=180), 7, 0.28098),
    # Ours counts queries alone: the original has 0.68098 here, for three days count as three queries.
    "one query on three days, ours": (hits(3, 1, 3, 0.7), 7, 0.62098),
}


@pytest.mark.parametrize("name", WORKED)
def test_the_score_by_hand(name):
    totals, half_life, expected = WORKED[name]
    assert value(totals, half_life) == pytest.approx(expected, abs=5e-6)


def test_the_best_score_is_the_sum_of_the_weights():
    assert sum(WEIGHTS) == pytest.approx(0.94)
    assert value(hits(6, 5, 5, 1.0)) == pytest.approx(0.94)
    assert score(ZERO) == 0


def test_five_days_are_full_consolidation():
    assert [consolidation(ZERO._replace(unique_days=days)) for days in (0, 1, 5, 6)] == [0, 0.2, 1, 1]


# ── gates ──


@pytest.mark.parametrize(
    "short",
    [
        {"recall_count": 4},
        {"queries": 3},
        {"unique_days": 3},
        {"score": 0.71},
    ],
    ids=lambda short: next(iter(short)),
)
def test_each_gate_alone_holds_a_memory_back(short):
    totals = hits(3, 2, 2, 1.0)
    memory = Promotion("m-a", 0.7, signals(totals, NOW, 7), totals.queries, totals.last_us)
    assert not lacking(memory, Gates(3, 2, 2, 0.7))
    assert len(lacking(memory, Gates(3, 2, 2, 0.7)._replace(**short))) == 1


def test_queries_are_counted_beyond_what_fills_diversity():
    """The original reads the number back from diversity, so days pass for queries and no setting above 5 can be met."""
    assert ids(chosen([PromotionCandidate("m-a", hits(9, 7, 1, 1.0))], gates=Gates(queries=7))) == ["m-a"]
    assert chosen([PromotionCandidate("m-a", hits(9, 1, 9, 1.0))]) == []


def test_hits_of_one_day_are_enough_unless_somebody_asks_for_more():
    """The original promises more than one day and never looks; ours is a gate with a setting."""
    one_day = [PromotionCandidate("m-a", hits(9, 3, 1, 1.0))]
    assert ids(chosen(one_day)) == ["m-a"]
    assert chosen(one_day, gates=Gates(unique_days=2)) == []


# ── order ──


def test_a_promotion_says_why():
    totals = hits(5, 3, 3, 0.5, age=3)
    (promotion,) = chosen([PromotionCandidate("m-a", totals)])
    assert promotion == ("m-a", value(totals), signals(totals, NOW, 7), 3, NOW - 3 * DAY)


@given(CANDIDATES, CHOSEN_BY, st.randoms(use_true_random=False))
def test_what_is_chosen_passes_every_gate_and_is_the_best_in_any_order(candidates, gates, chance):
    promoted = chosen(candidates, gates=gates)
    by_id = dict(candidates)
    worthy = {one.memory_id for one in weighed(candidates) if not lacking(one, gates)}
    assert set(ids(promoted)) <= worthy
    assert len(promoted) == len(set(ids(promoted))) == min(len(worthy), gates.most)
    assert [p.score for p in promoted] == sorted((p.score for p in promoted), reverse=True)
    left = [value(by_id[one]) for one in worthy.difference(ids(promoted))]
    assert max(left, default=0) <= min((p.score for p in promoted), default=1)
    chance.shuffle(candidates)
    assert chosen(candidates, gates=gates) == promoted


@given(
    TOTALS, st.lists(st.floats(0, 1), min_size=5, max_size=5).map(lambda five: SignalWeights(*five)), st.floats(0, 90)
)
def test_a_score_is_bounded_by_the_sum_of_the_weights(totals, weights, half_life):
    assert 0 <= value(totals, half_life, weights) <= sum(weights) * (1 + 1e-12)


# ── ids of sweeps ──


def test_the_id_of_a_sweep_is_its_instant():
    at_us = parse_instant("2026-04-24T03:00:59.123456Z")
    assert sweep_id(at_us) == "20260424T030059123Z"
    assert group_of(sweep_id(at_us)) == "2026-04-24 03:00 UTC"


@given(st.integers(0, 80_000 * DAY), st.integers(0, 80_000 * DAY))
def test_ids_of_sweeps_are_in_the_order_of_time(one, other):
    assert (sweep_id(one) < sweep_id(other)) == (one // 1000 < other // 1000)


@pytest.mark.parametrize(
    "text", ["", "20260424", "20260424T030000Z", "2026-04-24T03:00:00.000Z", "x0260424T030000000Z"]
)
def test_what_is_no_id_of_a_sweep_has_no_heading(text):
    with pytest.raises(ValueError, match="not the id of a sweep"):
        group_of(text)


# ── what a sweep leaves ──


def test_what_is_left_says_what_it_lacks_and_what_lacks_least_comes_first():
    left = nearest(
        weighed(
            [
                PromotionCandidate("m-old", hits(3, 2, 1, 0.2, age=200)),
                PromotionCandidate("m-one", hits(1, 1, 1, 1.0)),
                PromotionCandidate("m-two", hits(2, 2, 1, 1.0)),
                PromotionCandidate("m-rises", hits(3, 2, 1, 1.0)),
                PromotionCandidate("m-far", hits(1, 1, 1, 0.1, age=200)),
            ]
        ),
        GATES,
        3,
    )
    assert [(near.memory.memory_id, near.lacks) for near in left] == [
        ("m-two", ("1 more hit",)),
        ("m-old", ("a score of 0.35",)),
        ("m-one", ("2 more hits", "1 more query")),
    ]


@given(CANDIDATES, CHOSEN_BY)
def test_a_candidate_is_left_exactly_where_it_does_not_pass(candidates, gates):
    memories = weighed(candidates)
    left = {near.memory.memory_id for near in nearest(memories, gates, len(memories))}
    may = {one.memory_id for one in choose(memories, gates._replace(most=len(memories)))}
    assert left.isdisjoint(may) and left | may == {one.memory_id for one in candidates}
