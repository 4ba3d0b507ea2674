"""Ranks what was found: which candidates answer a query, in which order, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import Literal, NamedTuple

from signet_sync.recall.passages import QueryPassage
from signet_sync.recall.query import Query

Tier = Literal["memory", "fact", "curated", "thread", "node", "transcript"]
TIERS: tuple[Tier, ...] = ("memory", "fact", "curated", "thread", "node", "transcript")
LINE_TIERS: tuple[Tier, ...] = ("memory", "fact", "curated", "thread", "node")  # those with lines
TIER_OF: dict[str, Tier] = {"summary": "node", "compaction": "node", "transcript": "transcript"}  # by kind of artifact

# A hit is shown if its score is at least this part of the best one's; at a prompt, where fewer are wanted. Below a best
# score of `CLEAR`, which may well be of the wrong hit, the part is smaller, too.
KEPT, KEPT_AT_PROMPT, CLEAR = 0.5, 0.75, 0.55
# What decides a hit's score: its best passage, how often it has the words for its length, two words side by side.
OF_PASSAGE, OF_WHOLE, OF_PHRASE = 0.45, 0.45, 0.1
# The usual constants of bm25: when more of the same word count little more, and how much length counts.
_SATURATED, _OF_LENGTH = 1.2, 0.75
# A summary stands for its session's transcript if it scores this much more, a condensation for summaries.
MORE = 1.1
_OF_UNANSWERED = 0.5
_OF_NAME = 2.0  # how much more a name or number weighs than another word as rare
_PAIRED, _CLOSER = 3, 0.3
_OF_CLOSE = 0.75  # the part of what a text covers of a query that its best passage decides


class RecallCandidate(NamedTuple):
    """A possible answer. `terms` are the query's terms in it, with their worth; `score` is from 0 to 1.

    `where` says what and where it is, for the user. `session` is (token, session id) if it is in an artifact. What was
    made `by_rules` only stands for the words of that session. What is `unanswered` is a question, or the query itself.
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
    by_rules: bool = False
    unanswered: bool = False


def weights(query: Query, holding: Sequence[int], documents: int, of_asking: float = 1.0) -> list[float]:
    """Returns the weight of each term: the rarer, the higher, and higher for names and numbers than for other words.

    `holding` counts the documents with each term, of `documents` in all. Words that only ask weigh `of_asking` of it.
    """
    return [
        term.share * (_OF_NAME if term.name else of_asking if term.asks else 1.0) * rarity(count, documents)
        for term, count in zip(query.terms, holding, strict=True)
    ]


def rarity(count: int, documents: int) -> float:
    """Returns the weight of a plain word that `count` of `documents` contain."""
    return 1 + log(1 + (documents - count + 0.5) / (count + 0.5))


def selective_terms(weights: Sequence[float], holding: Sequence[int], found_by: float = 1.0) -> list[int]:
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
    """Returns the heaviest term with each of the next two, and how much more each pair weighs when close together."""
    most = sorted(range(len(weights)), key=lambda number: (number not in selective, -weights[number]))[:_PAIRED]
    near = [(most[0], other) for other in most[1:]]
    return near, [_CLOSER * (weights[one] + weights[other]) for one, other in near]


def scored(weights: Sequence[float], passage: QueryPassage, size: float) -> float:
    """Scores how well a text answers, from 0 to 1; `size` is its length in relation to that of the other texts."""
    enough = _SATURATED * (1 - _OF_LENGTH + _OF_LENGTH * size)
    whole = sum(weights[term] * times / (times + enough) for term, times in passage.often.items())
    return (OF_PASSAGE * passage.weight + OF_WHOLE * whole + OF_PHRASE * passage.phrase) / sum(weights)


def covered(weights: Sequence[float], passage: QueryPassage, size: float) -> float:
    """Scores which part of a query a text contains, from 0 to 1, mostly its best passage; its `size` does not count."""
    return (_OF_CLOSE * passage.weight + (1 - _OF_CLOSE) * passage.whole) / sum(weights)


def choose(candidates: Iterable[RecallCandidate], limit: int, kept: float = KEPT) -> list[RecallCandidate]:
    """Returns the hits to show, the best first, at most `limit`: a session once, and repeated texts once.

    Only what scores `kept` of the best one is shown, or less if that scores little itself. Of equal scores the tiers
    decide, in their order. Unanswered questions score half.
    """
    weighed = (one._replace(score=_OF_UNANSWERED * one.score) if one.unanswered else one for one in candidates)
    found = _of_sessions(sorted(weighed, key=_order))
    best = max((candidate.score for candidate in found), default=0.0)
    least = kept * best * min(1.0, best / CLEAR)
    good = [candidate for candidate in found if candidate.score > 0 and candidate.score >= least]
    return _without_repeats(good)[:limit]


def _order(candidate: RecallCandidate) -> tuple[float, int, int, str]:
    return -round(candidate.score, 2), TIERS.index(candidate.tier), -candidate.at_us, candidate.id


def _of_sessions(candidates: Sequence[RecallCandidate]) -> list[RecallCandidate]:
    """Leaves of each session's thread, summaries, compactions and transcripts one, with the best score of them.

    It is a transcript, which has the words themselves, unless a summary that was not made by rules answers clearly
    better.
    """
    groups: dict[tuple[str, str], list[RecallCandidate]] = {}
    for one in candidates:
        if one.session is not None:
            groups.setdefault(one.session, []).append(one)
    chosen = {}
    for session, found in groups.items():
        best = found[0]
        least = max((one.score for one in found if not one.by_rules), default=0.0) / MORE
        said = next((one for one in found if one.tier == "transcript" and one.score >= least), None)
        kept = said or next((one for one in found if not one.by_rules), best)
        chosen[session] = kept._replace(score=best.score)
    return [one if one.session is None else chosen.pop(one.session) for one in candidates if _wanted(one, chosen)]


def _wanted(one: RecallCandidate, chosen: Mapping[tuple[str, str], RecallCandidate]) -> bool:
    return one.session is None or one.session in chosen


def _without_repeats(candidates: Sequence[RecallCandidate]) -> list[RecallCandidate]:
    """Drops repeated texts, and condensations that say no more than a session."""
    sessions = max((one.score for one in candidates if one.session is not None), default=0.0)
    kept: list[RecallCandidate] = []
    texts: set[str] = set()
    for candidate in candidates:
        text = folded_text(candidate.text)
        if text in texts or (
            candidate.tier == "node" and candidate.session is None and candidate.score <= MORE * sessions
        ):
            continue
        texts.add(text)
        kept.append(candidate)
    return kept


def folded_text(text: str) -> str:
    """Returns what equal texts have in common."""
    return " ".join(text.casefold().split()).rstrip(".!?…")


def for_prompt(query: Query, candidates: Iterable[RecallCandidate], limit: int) -> list[RecallCandidate]:
    """Returns the hits to show at a prompt: transcripts only if no extracted statement answers, no question alone."""
    said = () if query.common else (one for one in candidates if not one.unanswered)
    chosen = choose(said, limit, KEPT_AT_PROMPT)
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
