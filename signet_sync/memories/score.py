"""Scores what MEMORY.md may show, and what a sweep promotes, by rules; uses no model.

Scores of what is shown decay with age and grow with use; pinned things do not decay. A memory is promoted by a score of
its recall signals and by gates.
"""

from collections.abc import Sequence
from math import log1p, log2
from typing import NamedTuple

from signet_sync.formats.timestamps import DAY, iso

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
    """Why a memory was promoted: the instant of its sweep, and the score, hits and days it had then."""

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


# ── promotion ──


# More hits, distinct queries or days than these raise no signal: frequency, diversity, consolidation.
FULL_HITS, FULL_QUERIES, FULL_DAYS = 6, 5, 5
# Days after which the last hit of a memory counts half as recent.
RECENCY_HALF_LIFE = 7.0
# The most that each signal adds to the score: 0.94 in all.
SIGNALS = {"frequency": 0.24, "relevance": 0.30, "recency": 0.15, "diversity": 0.15, "consolidation": 0.10}
# What a memory must reach, beside a score: hits, distinct queries, distinct days.
LEAST_HITS, LEAST_QUERIES, LEAST_DAYS = 3, 2, 1

_WITHOUT_MARKS = str.maketrans("", "", "-:.")


class Totals(NamedTuple):
    """Totals of a memory's events: hits, sum of scores, last hit (µs), distinct queries, distinct UTC days."""

    hits: int
    score_sum: float
    last_us: int
    queries: int
    days: int


class Promotion(NamedTuple):
    """A memory that a sweep promotes or considers, with its signals at that time; `last_us` is its last hit.

    `recall_count`, `unique_days` and `queries` are counts, the other signals are in [0, 1].
    """

    memory_id: str
    score: float
    recall_count: int
    frequency: float
    relevance: float
    recency: float
    diversity: float
    unique_days: int
    queries: int
    last_us: int


def weigh(memory_id: str, totals: Totals, now_us: int) -> Promotion:
    """Returns a memory, which has hits, with its signals and score at `now_us` (microseconds since 1970 UTC).

    Frequency is `ln(1 + hits) / ln 7` and diversity `queries / 5`, both at most 1; relevance is the mean score; recency
    halves with every half-life since the last hit, and is 1 for a hit in the future. The score is the weighted sum.
    Source: seed 004; unlike in the program described there, several days of one query are not diversity
    (`docs/internals/conformance.md`).
    """
    memory = Promotion(
        memory_id,
        score=0.0,
        recall_count=totals.hits,
        frequency=min(1.0, log1p(totals.hits) / log1p(FULL_HITS)),
        relevance=min(1.0, max(0.0, totals.score_sum / totals.hits)),
        recency=decay(now_us - totals.last_us, RECENCY_HALF_LIFE),
        diversity=min(1.0, totals.queries / FULL_QUERIES),
        unique_days=totals.days,
        queries=totals.queries,
        last_us=totals.last_us,
    )
    consolidation = min(1.0, totals.days / FULL_DAYS)
    values = memory.frequency, memory.relevance, memory.recency, memory.diversity, consolidation
    return memory._replace(score=sum(weight * value for weight, value in zip(SIGNALS.values(), values, strict=True)))


def passes(memory: Promotion, least: float) -> bool:
    """Returns whether a memory has the hits, queries, days and the score that a promotion needs."""
    counts = memory.recall_count >= LEAST_HITS and memory.queries >= LEAST_QUERIES
    return counts and memory.unique_days >= LEAST_DAYS and memory.score >= least


def order(memory: Promotion) -> tuple[float, int, str]:
    """Returns a sort key: the best first; ties by the last hit, newest first, then by id, the same on every machine."""
    return -memory.score, -memory.last_us, memory.memory_id


def sweep_id(now_us: int) -> str:
    """Returns the id of a sweep at this instant, `20260424T030000000Z`; ids sort by time."""
    return iso(now_us).translate(_WITHOUT_MARKS)


# ── what pages show ──


class Dream(NamedTuple):
    """A memory as it was promoted, and when that was (µs since 1970 UTC)."""

    memory: Promotion
    text: str
    at_us: int


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
