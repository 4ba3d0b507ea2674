"""Ranks what was found: which candidates answer a query, in which order, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from math import log
from typing import Literal, NamedTuple

from signet_sync.recall.passages import QueryPassage
from signet_sync.recall.query import Query

Tier = Literal["memory", "fact", "curated", "thread", "node", "transcript"]
TIERS: tuple[Tier, ...] = ("memory", "fact", "curated", "thread", "node", "transcript")

# A hit is shown if its score is at least this part of the best one's.
KEPT = 0.75
# The part of a hit's score that its best passage decides; the rest depends on all that the hit contains.
OF_PASSAGE = 0.75
# A transcript is dropped unless it scores this much more than its session's summary.
MORE = 1.1
_FIRST = 5
_OF_NAME = 2.0  # how much more a name or number weighs than another word as rare
_PAIRED, _CLOSER = 3, 0.3
_FOUND_BY = 0.45  # of the weight of all terms


class RecallCandidate(NamedTuple):
    """A possible answer. `terms` are the query's terms in it, with their worth; `score` is from 0 to 1.

    `where` says what and where it is, for the user. `session` is (token, session id) if it is in an artifact.
    """

    tier: Tier
    id: str
    text: str
    path: str | None
    at_us: int
    score: float
    terms: Mapping[int, float]
    where: str
    session: tuple[str, str] | None = None


def weights(query: Query, holding: Sequence[int], documents: int) -> list[float]:
    """Returns the weight of each term: the rarer, the higher, and higher for names and numbers than for other words.

    `holding` counts the documents with each term, of `documents` in all.
    """
    return [
        term.share * (_OF_NAME if term.name else 1.0) * rarity(count, documents)
        for term, count in zip(query.terms, holding, strict=True)
    ]


def rarity(count: int, documents: int) -> float:
    """Returns the weight of a plain word that `count` of `documents` contain."""
    return 1 + log(1 + (documents - count + 0.5) / (count + 0.5))


def selective_terms(weights: Sequence[float], holding: Sequence[int]) -> list[int]:
    """Returns the terms by which texts are found: those of highest weight, and those in no artifact but maybe a memory.

    A text without any of them is not among the best, and words that are nearly everywhere are not searched for.
    """
    selective = [number for number, count in enumerate(holding) if not count]
    known = sorted((number for number, count in enumerate(holding) if count), key=lambda number: -weights[number])
    left = sum(weights[number] for number in known)
    enough = (1 - _FOUND_BY) * left
    for number in known:
        if left <= enough:
            break
        selective.append(number)
        left -= weights[number]
    return selective


def pairs(weights: Sequence[float], selective: Sequence[int]) -> tuple[list[tuple[int, int]], list[float]]:
    """Returns the pairs of terms that weigh most when close together, and how much more each then weighs."""
    most = sorted(range(len(weights)), key=lambda number: (number not in selective, -weights[number]))[:_PAIRED]
    near = list(combinations(sorted(most), 2))
    return near, [_CLOSER * (weights[one] + weights[other]) for one, other in near]


def scored(weights: Sequence[float], passage: QueryPassage) -> float:
    """Scores how well a text answers, from 0 to 1: by its best passage, and a little by all that it contains."""
    return (OF_PASSAGE * passage.weight + (1 - OF_PASSAGE) * passage.whole) / sum(weights)


def choose(candidates: Iterable[RecallCandidate], limit: int) -> list[RecallCandidate]:
    """Returns the hits to show, best first within their tier, tiers in their order; at most `limit`.

    Only what scores `KEPT` of the best one is shown, repeated texts only once, and the first places are shared
    among the tiers.
    """
    found = sorted(candidates, key=_order)
    best = max((candidate.score for candidate in found), default=0.0)
    good = [candidate for candidate in found if candidate.score > 0 and candidate.score >= KEPT * best]
    return _placed(_without_repeats(good), limit)


def _order(candidate: RecallCandidate) -> tuple[int, float, int, str]:
    return TIERS.index(candidate.tier), -round(candidate.score, 2), -candidate.at_us, candidate.id


def _without_repeats(candidates: Sequence[RecallCandidate]) -> list[RecallCandidate]:
    """Drops repeated texts, transcripts whose summary is as good, and condensations of such summaries."""
    of_sessions: dict[tuple[str, str] | None, float] = {}
    for candidate in candidates:
        if candidate.tier == "node" and candidate.session is not None:
            of_sessions[candidate.session] = max(candidate.score, of_sessions.get(candidate.session, 0.0))
    summed = max(of_sessions.values(), default=0.0)
    kept: list[RecallCandidate] = []
    texts: set[str] = set()
    sessions: set[tuple[str, str]] = set()
    for candidate in candidates:
        text = _same(candidate.text)
        above = of_sessions.get(candidate.session, 0.0) if candidate.tier == "transcript" else 0.0
        if candidate.tier == "node" and candidate.session is None:
            above = summed
        if text in texts or candidate.score <= MORE * above:
            continue
        if candidate.tier == "transcript" and candidate.session is not None:
            if candidate.session in sessions:
                continue
            sessions.add(candidate.session)
        texts.add(text)
        kept.append(candidate)
    return kept


def _same(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!?…")


def _placed(candidates: Sequence[RecallCandidate], limit: int) -> list[RecallCandidate]:
    """Shares the first places out among the tiers; the rest goes to tiers that displace no hit from these."""
    tiers = {tier: [c for c in candidates if c.tier == tier] for tier in TIERS}
    shown = dict.fromkeys(TIERS, 0)

    def fill(places: int, among: Collection[Tier]) -> None:
        for _ in range(places):
            waiting = [tier for tier in among if shown[tier] < len(tiers[tier])]
            if waiting:
                # One of each tier before a second of any, then the better one.
                shown[min(waiting, key=lambda t: (shown[t] > 0, -tiers[t][shown[t]].score, TIERS.index(t)))] += 1

    first = min(limit, max(_FIRST, limit // 2))
    fill(first, TIERS)
    fill(limit - first, _behind(tiers))
    return [candidate for tier in TIERS for candidate in tiers[tier][: shown[tier]]]


def _behind(tiers: Mapping[Tier, Sequence[RecallCandidate]]) -> Collection[Tier]:
    """Returns the tiers that may continue after the first places: nodes only if no transcript after them is as good."""
    best = {tier: found[0].score for tier, found in tiers.items() if found}
    if "transcript" in best and best["transcript"] >= best.get("node", 0.0):
        return TIERS[-1:]
    return TIERS[-2:] if "node" in best else TIERS


def for_prompt(query: Query, candidates: Iterable[RecallCandidate], limit: int) -> list[RecallCandidate]:
    """Returns the hits to show at a prompt: transcripts only if no extracted statement answers."""
    chosen = choose(() if query.common else candidates, limit)
    return [candidate for candidate in chosen if candidate.tier != "transcript"] or chosen


def why(query: Query, candidate: RecallCandidate) -> str:
    """Returns why a hit is shown, for the user: `3 of 4 words, in a decision of lantern, 2026-03-28`."""
    parts: dict[int, list[bool]] = {}
    for number, term in enumerate(query.terms):
        parts.setdefault(term.word, []).append(number in candidate.terms)
    whole = sum(all(found) for found in parts.values())
    if whole == query.words:
        share = "the word" if whole == 1 else "all words"
    elif whole:
        share = f"{whole} of {query.words} words"
    else:
        share = "part of a word"
    return f"{share}, in {candidate.where}"
