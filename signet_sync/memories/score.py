"""Scores what MEMORY.md may show: scores decay with age and grow with use; pinned things do not decay."""

from math import log2
from typing import NamedTuple

from signet_sync.formats.timestamps import DAY

# The score of a line on its first day. Threads come first, because they show where to go on; missing a constraint or a
# blocker costs more than missing a note. Memories of any type, and entity files, weigh as much as a thread.
WEIGHTS: dict[str, float] = {
    "thread": 1.0, "blocker": 0.9, "next": 0.8, "constraint": 0.8, "decision": 0.8, "preference": 0.7,
    "person": 0.6, "question": 0.6, "note": 0.5, "tried": 0.5,
}  # fmt: skip
REMEMBERED = 1.0

# The share that each doubling of accesses adds, its half-life in days, and the number of accesses above which more add
# nothing.
REINFORCEMENT = 0.25
REINFORCEMENT_HALF_LIFE = 30.0
MOST_ACCESSES = 1 << 20

# Days after which a thing of a kind counts half as much, unless it is pinned; a thread or a next step is soon of the
# past, a constraint or a preference seldom.
HALF_LIVES: dict[str, float] = {
    "thread": 14.0, "next": 14.0, "blocker": 14.0, "question": 21.0, "note": 45.0, "tried": 45.0, "decision": 90.0,
    "constraint": 180.0, "preference": 365.0, "person": 180.0,
}  # fmt: skip
# For any other kind, in days.
USUAL_HALF_LIFE = 30.0

_FARTHEST = 1 << 62


class Use(NamedTuple):
    """The use of a thing until the day before: accesses, the start of the day of the last one, and whether pinned.

    Instants are microseconds since 1970 UTC; `last_us` is None without any access.
    """

    accesses: int = 0
    last_us: int | None = None
    pinned: bool = False


UNUSED = Use()


class DreamedView(NamedTuple):
    """Why a memory was promoted: the heading of its sweep, its instant, and the score, hits and days it had then."""

    heading: str
    at_us: int
    score: float
    hits: int
    days: int


def day_start(now_us: int) -> int:
    """Returns the first instant of a UTC day, in microseconds since 1970: the `now` of all scores on a page."""
    return now_us - now_us % DAY


def score(
    kind: str,
    at_us: int,
    now_us: int,
    *,
    accesses: int = 0,
    last_access_us: int | None = None,
    pinned: bool = False,
    remembered: bool = False,
) -> float:
    """Scores a thing of a kind, stated at `at_us`, at the time `now_us`. Never negative, finite, without a unit.

    `weight(kind) * 2^-(age / half_life(kind)) * (1 + 0.25 * log2(1 + accesses) * 2^-(days since the last access / 30))`

    Ages and half-lives are days of 86,400 s, instants microseconds since 1970 UTC. Statements and accesses after
    `now_us` have age 0; with the start of the UTC day as `now_us`, a score changes once a day. Pinned things have age 0
    in both places. Accesses above 2^20 count as 2^20: no score is above `6 * weight`. The formula is exponential
    forgetting, with a boost for use that fades itself.
    """
    weight = REMEMBERED if remembered else WEIGHTS.get(kind, WEIGHTS["note"])
    if accesses <= 0 and not pinned:  # as are nearly all candidates for a page
        return weight * decay(now_us - at_us, HALF_LIVES.get(kind, USUAL_HALF_LIFE))
    uses = min(max(accesses, 0), MOST_ACCESSES)
    boost = REINFORCEMENT * log2(1 + uses)
    if pinned:
        return weight * (1 + boost)
    faded = 0.0 if last_access_us is None else decay(now_us - last_access_us, REINFORCEMENT_HALF_LIFE)
    return weight * decay(now_us - at_us, HALF_LIVES.get(kind, USUAL_HALF_LIFE)) * (1 + boost * faded)


def decay(age_us: int, half_life: float) -> float:
    """Returns `2^-(age / half_life)`: 1 at age 0 or in the future."""
    return float(2.0 ** -(min(max(age_us, 0), _FARTHEST) / DAY / half_life))


def rank(value: float, at_us: int, thing_id: str, *, pinned: bool) -> tuple[bool, float, int, str]:
    """Returns a sort key: pins first, then the highest score, then the newest, then by id."""
    return not pinned, -value, -at_us, thing_id
