"""The score of what MEMORY.md may show: it decays with age, grows with use, and pins do not decay."""

from __future__ import annotations

from collections.abc import Mapping
from math import log2
from typing import NamedTuple

from signet_sync.formats.timestamps import DAY

# What a line is worth on the day it was said. A thread leads, because it says where to go on; a constraint or a blocker
# is dearer to miss than a note. Whatever somebody asked to be remembered, or keeps as an entity file, is worth
# as much as a thread, of any type.
WEIGHTS: dict[str, float] = {
    "thread": 1.0, "blocker": 0.9, "next": 0.8, "constraint": 0.8, "decision": 0.8, "preference": 0.7,
    "person": 0.6, "question": 0.6, "note": 0.5, "node": 0.5,
}  # fmt: skip
REMEMBERED = 1.0

# The share that each doubling of accesses adds, how fast that fades in days, and where more accesses add no more.
REINFORCEMENT = 0.25
REINFORCEMENT_HALF_LIFE = 30.0
MOST_ACCESSES = 1 << 20

# For a kind that no setting names, in days.
USUAL_HALF_LIFE = 30.0

_FARTHEST = 1 << 62


class Use(NamedTuple):
    """How a thing was used up to the day before: accesses, the last one's day as its first instant, and whether pinned.

    Instants are microseconds since 1970 UTC; `last_us` is None where there was no access.
    """

    accesses: int = 0
    last_us: int | None = None
    pinned: bool = False


UNUSED = Use()


def day_start(now_us: int) -> int:
    """The first instant of a UTC day, in microseconds since 1970: the `now` of every score that a page shows."""
    return now_us - now_us % DAY


def score(
    kind: str,
    at_us: int,
    now_us: int,
    *,
    half_lives: Mapping[str, float],
    accesses: int = 0,
    last_access_us: int | None = None,
    pinned: bool = False,
    remembered: bool = False,
) -> float:
    """What something of a kind, said at `at_us`, is worth at `now_us`. Never negative, finite, without a unit.

    `weight(kind) * 2^-(age / half_life(kind)) * (1 + 0.25 * log2(1 + accesses) * 2^-(days since the last access / 30))`

    Ages and half-lives are days of 86,400 s, instants microseconds since 1970 UTC; what is said or asked for after
    `now_us` has age 0, so with the start of the UTC day as `now_us` a score moves once a day. A half-life of 0 lets
    everything older than that go at once. What is pinned has age 0 in both places. Accesses above 2^20 count as 2^20:
    no score is above `6 * weight`. Source: seed 001 (decay-aware, pin-exempt), the half-lives are settings
    (`score.half_life_…`); the shape is that of exponential forgetting, with use as a boost that fades itself.
    """
    weight = REMEMBERED if remembered else WEIGHTS.get(kind, WEIGHTS["node"])
    if accesses <= 0 and not pinned:  # so is nearly everything that a page might show
        return weight * decay(now_us - at_us, half_lives.get(kind, USUAL_HALF_LIFE))
    uses = min(max(accesses, 0), MOST_ACCESSES)
    boost = REINFORCEMENT * log2(1 + uses)
    if pinned:
        return weight * (1 + boost)
    faded = 0.0 if last_access_us is None else decay(now_us - last_access_us, REINFORCEMENT_HALF_LIFE)
    return weight * decay(now_us - at_us, half_lives.get(kind, USUAL_HALF_LIFE)) * (1 + boost * faded)


def decay(age_us: int, half_life: float) -> float:
    """`2^-(age / half_life)`: 1 for what is new or yet to come, 0 for all else where the half-life is 0."""
    age = min(max(age_us, 0), _FARTHEST) / DAY
    if age == 0:
        return 1.0
    return float(2.0 ** -(age / half_life)) if half_life > 0 else 0.0


def rank(value: float, at_us: int, thing_id: str, *, pinned: bool) -> tuple[bool, float, int, str]:
    """Sorts what stays longest to the front: pins, then the highest score, then the newest, then by id."""
    return not pinned, -value, -at_us, thing_id
