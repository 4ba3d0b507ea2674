"""Ranks what was found: which candidates answer a query, in which order, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import log
from typing import Literal, NamedTuple

from signet_sync.recall.passages import QueryPassage
from signet_sync.recall.query import Query

Tier = Literal["memory", "fact", "curated", "thread", "node", "transcript"]
TIERS: tuple[Tier, ...] = ("memory", "fact", "curated", "thread", "node", "transcript")

# A hit is shown if its score is at least this part of the best one's; at a prompt, where fewer are wanted.
KEPT, KEPT_AT_PROMPT = 0.5, 0.75
# The part of a hit's score that its best passage decides; the rest depends on all that the hit contains.
OF_PASSAGE = 0.75
# A summary stands for its session's transcript if it scores this much more, a condensation for summaries.
MORE = 1.1
_OF_NAME = 2.0  # how much more a name or number weighs than another word as rare
_PAIRED, _CLOSER = 3, 0.3
# Of the weight of all terms: so much of it finds texts, the rarest terms first.
FOUND_BY, FOUND_BY_AT_PROMPT = 1.0, 0.45


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


def selective_terms(weights: Sequence[float], holding: Sequence[int], found_by: float = FOUND_BY) -> list[int]:
    """Returns the terms by which texts are found: those of highest weight, and those in no artifact but maybe a memory.

    Together they have `found_by` of the weight of all terms.
    """
    selective = [number for number, count in enumerate(holding) if not count]
    known = sorted((number for number, count in enumerate(holding) if count), key=lambda number: -weights[number])
    left = sum(weights[number] for number in known)
    enough = (1 - found_by) * left
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


def choose(candidates: Iterable[RecallCandidate], limit: int, kept: float = KEPT) -> list[RecallCandidate]:
    """Returns the hits to show, the best first, at most `limit`: a session once, and repeated texts once.

    Only what scores `kept` of the best one is shown. Of equal scores the tiers decide, in their order.
    """
    found = _of_sessions(sorted(candidates, key=_order))
    best = max((candidate.score for candidate in found), default=0.0)
    good = [candidate for candidate in found if candidate.score > 0 and candidate.score >= kept * best]
    return _without_repeats(good)[:limit]


def _order(candidate: RecallCandidate) -> tuple[float, int, int, str]:
    return -round(candidate.score, 2), TIERS.index(candidate.tier), -candidate.at_us, candidate.id


def _of_sessions(candidates: Sequence[RecallCandidate]) -> list[RecallCandidate]:
    """Leaves of each session's summaries, compactions and transcripts one, with the best score of them.

    It is a transcript, which has the words themselves, unless a summary answers clearly better.
    """
    groups: dict[tuple[str, str], list[RecallCandidate]] = {}
    for one in candidates:
        if one.tier in ("node", "transcript") and one.session is not None:
            groups.setdefault(one.session, []).append(one)
    chosen = {}
    for session, found in groups.items():
        best = found[0]
        said = next((one for one in found if one.tier == "transcript" and one.score * MORE >= best.score), best)
        chosen[session] = said._replace(score=best.score)
    kept = []
    for one in candidates:
        if one.tier not in ("node", "transcript") or one.session is None:
            kept.append(one)
        elif one.session in chosen:
            kept.append(chosen.pop(one.session))
    return kept


def _without_repeats(candidates: Sequence[RecallCandidate]) -> list[RecallCandidate]:
    """Drops repeated texts, and condensations that say no more than a session."""
    sessions = max((one.score for one in candidates if one.session is not None), default=0.0)
    kept: list[RecallCandidate] = []
    texts: set[str] = set()
    for candidate in candidates:
        text = _same(candidate.text)
        if text in texts or (
            candidate.tier == "node" and candidate.session is None and candidate.score <= MORE * sessions
        ):
            continue
        texts.add(text)
        kept.append(candidate)
    return kept


def _same(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!?…")


def for_prompt(query: Query, candidates: Iterable[RecallCandidate], limit: int) -> list[RecallCandidate]:
    """Returns the hits to show at a prompt: transcripts only if no extracted statement answers."""
    chosen = choose(() if query.common else candidates, limit, KEPT_AT_PROMPT)
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
