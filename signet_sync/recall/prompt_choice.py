"""Chooses what is worth injecting at a prompt: few hits, above a floor, each from another session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from signet_sync.recall.query import Query
from signet_sync.recall.rank import RecallCandidate, Tier

# The least share of a prompt's words, weighed by rarity, that a hit anywhere contains close together.
FLOOR = 0.6
# The same if the prompt asks about earlier work: anywhere, and in the project at hand.
ASKED_FLOOR, OWN_FLOOR = 0.34, 0.04
# A hit anywhere contains at least this many times the weight of a word that is in one artifact only.
_RARE = 1.6
_KEPT = 0.6  # of the best hit's score
# How much a kind of hit is preferred over others of the same session: a statement says more in fewer words.
_PREFERRED: dict[Tier, float] = {
    "memory": 1.3, "fact": 1.3, "curated": 1.2, "thread": 1.0, "node": 1.1, "transcript": 0.8,
}  # fmt: skip


def choose(
    query: Query,
    weights: Sequence[float],
    heaviest: float,
    anywhere: Iterable[RecallCandidate],
    own: Iterable[RecallCandidate],
    source: Callable[[RecallCandidate], str],
    *,
    asks_about_earlier_work: bool,
) -> list[RecallCandidate]:
    """Returns hits, the best first, at most one of each `source`; `heaviest` is the weight of the rarest plain word.

    Hits of the project at hand (`own`) count even with few words of a prompt that asks about earlier work. Unanswered
    questions never count.
    """
    if query.common:
        return []
    floor = ASKED_FLOOR if asks_about_earlier_work else FLOOR
    good = [one for one in anywhere if one.score >= floor and _covered(one, weights) >= _RARE * heaviest]
    if asks_about_earlier_work:
        good += [one for one in own if one.score >= OWN_FLOOR]
    good = [one for one in good if not one.unanswered]
    best = max((one.score for one in good), default=0.0)
    if best >= FLOOR:  # few words are enough for a hit, but not beside one that has most of them
        good = [one for one in good if one.score >= _KEPT * best]
    chosen: dict[str, RecallCandidate] = {}
    for one in good:
        held = chosen.get(source(one))
        if held is None or _worth(one) > _worth(held):
            chosen[source(one)] = one
    return sorted(chosen.values(), key=lambda one: (-round(one.score, 2), -one.at_us, one.id))


def _covered(candidate: RecallCandidate, weights: Sequence[float]) -> float:
    return sum(weights[term] * worth for term, worth in candidate.terms.items())


def _worth(candidate: RecallCandidate) -> tuple[float, int, str]:
    return candidate.score * _PREFERRED[candidate.tier], candidate.at_us, candidate.id
