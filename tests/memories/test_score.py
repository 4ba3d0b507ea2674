"""Scores: they fall with age, rise with use, are bounded and finite, and pins do not decay."""

from __future__ import annotations

from math import isfinite

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from signet_sync.formats.statement import SECTION_OF
from signet_sync.formats.timestamps import DAY
from signet_sync.memories.score import HALF_LIVES, REMEMBERED, WEIGHTS, day_start, rank, score

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


@given(KINDS, INSTANTS, INSTANTS, INSTANTS, COUNTS, ACCESS)
def test_pins_never_decay(kind, at, now, later, uses, last):
    given_ = {"accesses": uses, "pinned": True}
    assert score(kind, at, now, last_access_us=last, **given_) == score(kind, at, later, last_access_us=None, **given_)


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
