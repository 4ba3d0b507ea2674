"""Finds the sessions and statements that answer a question: one score for `recall`, MCP, the page and prompts.

Words weigh by rarity among the texts of the agent: bm25 of FTS5 would count those of others. A text is ranked by its
best passage, by all of them, as a whole, and most by coverage: the share of the question within a passage and its
neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import nlargest
from math import log
from operator import attrgetter
from typing import NamedTuple

from signet_sync.formats.timestamps import local
from signet_sync.recall.query import Question, Term
from signet_sync.recall.store import rows
from signet_sync.recall.store.rows import FoundText, Period
from signet_sync.storage.database.connection import Database

MOST_PASSAGES, MOST_WHOLE, MOST_FOUND = 400, 100, 40
COMMON = 3_000  # passages; a word of more of them finds nothing, but counts
_NEWEST = 2_000  # texts that are searched where every word is common
_OF_SAID, _OF_WHOLE, _OF_SUM, _OF_COVERED = 1.0, 1.0, 1.0, 3.0
_OF_ALL = _OF_SAID + _OF_WHOLE + _OF_SUM + _OF_COVERED
_LEAST = 0.3  # weight of a word that every text has
_OF_PRINTED = 0.2  # of the weight of a word, where only a tool printed it
_SATURATED, _OF_LENGTH = 1.2, 0.3  # constants of bm25; passages differ little in length
_SHOWN = 4  # passages of a text
_NEARLY = 0.9  # of what another text of the session covers


class Within(NamedTuple):
    """What is searched: an agent's memory, or only statements; of a time; of the project with this name."""

    agent_id: str
    private: bool = True
    statements: bool = False
    period: Period | None = None
    project: str | None = None

    def holds(self, at_us: int) -> bool:
        """Returns whether an instant is in the period; numbers of texts tell the second only."""
        return self.period is None or self.period.holds(at_us)


class WeighedTerms(NamedTuple):
    """The terms of a question as an agent's texts know them: the rarer, the heavier.

    Those that find have the passages with them; `words` and `printed` have the texts that say them, or whose tools
    printed them.
    """

    terms: Sequence[Term]
    weights: Sequence[float]
    passages: Mapping[int, frozenset[int]]
    words: Mapping[int, frozenset[int]]
    printed: Mapping[int, frozenset[int]]
    heaviest: float  # weight of a plain word that one text contains

    def share(self, terms: Iterable[int]) -> float:
        """Returns how much of the question's weight some terms have, from 0 to 1."""
        return sum(self.weights[number] for number in terms) / (sum(self.weights) or 1.0)


class Match(NamedTuple):
    """A session or statement that answers, and the text of it that is shown.

    `said`, `all_said` and `whole` weigh its words for its length: of the best passage, of all, of the whole text.
    `covered` is the share of the question that a passage and its neighbours have, `terms` which of it. `score` is from
    0 to 1.
    """

    text: FoundText
    said: float
    all_said: float
    whole: float
    covered: float
    terms: frozenset[int]
    places: tuple[int, ...]
    score: float = 0.0


_PARTS: tuple[Callable[[Match], float], ...] = (attrgetter("said"), attrgetter("all_said"), attrgetter("whole"))


def search(
    database: Database, question: Question, within: Within, most: int = MOST_FOUND
) -> tuple[WeighedTerms, list[Match]]:
    """Returns the weighed terms, and the best sessions and statements, at most `most`, each once."""
    ranges = rows.ranges(database, within.agent_id, within.period, private=within.private, statements=within.statements)
    weighed = weigh(database, question, ranges, within.project)
    if not weighed.passages and weighed.terms:  # every word is common
        weighed = weigh(database, question, rows.newest(database, ranges, _NEWEST), within.project, -1)
    texts = _matches(database, weighed)
    found = [one for one in _of_sessions(database, weighed, texts) if within.holds(one.text.at_us)]
    best = [_with_common(database, weighed, one) for one in _scored(found)[:MOST_FOUND]]
    return weighed, _scored(best)[:most]


def weigh(
    database: Database,
    question: Question,
    ranges: Sequence[tuple[int, int]],
    project: str | None = None,
    most: int = COMMON,
) -> WeighedTerms:
    """Weighs the terms by rarity among the texts of some ranges; words that no text has are replaced by similar ones.

    A term of more than `most` passages finds none.
    """
    texts = rows.count(database, ranges)
    terms, weights = list(question.terms), []
    of_project = "" if project is None else f" AND about : {rows.quoted(project)}"
    passages, words, printed = {}, {}, {}
    for number, term in enumerate(question.terms):
        found = rows.passages_with(database, term.expression + of_project, ranges, most + 1)
        if not found and term.plain and (alike := rows.spelled_like(database, term.forms[0])):
            term = terms[number] = term._replace(forms=(*term.forms, *alike))
            found = rows.passages_with(database, term.expression + of_project, ranges, most + 1)
        saying = rows.texts_with(database, "words about", term.expression, of_project, ranges, COMMON + 1)
        weights.append(term.worth * rarity(len(saying), texts))
        if len(found) <= most or most < 0:
            passages[number], words[number] = found, saying
            printed[number] = rows.texts_with(database, "printed", term.expression, of_project, ranges, COMMON) - saying
    return WeighedTerms(terms, weights, passages, words, printed, rarity(1, texts))


def rarity(holding: int, texts: int) -> float:
    """Returns the weight of a word that `holding` of `texts` contain."""
    return _LEAST + log(1 + (max(texts - holding, 0) + 0.5) / (holding + 0.5))


def _matches(database: Database, weighed: WeighedTerms) -> list[Match]:
    """Returns the texts whose passages, or whose words as a whole, have most of the question."""
    said = _summed((weighed.passages, 1.0), weights=weighed.weights, most=MOST_PASSAGES)
    whole = _summed((weighed.words, 1.0), (weighed.printed, _OF_PRINTED), weights=weighed.weights, most=MOST_WHOLE)
    placed = list(rows.texts_of(database, list({*said, *whole})))
    usual = _mean(length for _, place, length in placed if place in said)
    ranked: dict[FoundText, list[tuple[int, float]]] = {}
    for text, place, length in placed:
        places = ranked.setdefault(text, [])
        if place in said:
            places.append((place, said[place] * _for_length(length / usual)))
    return [_match(weighed, text, places) for text, places in ranked.items()]


def _summed(
    *parts: tuple[Mapping[int, frozenset[int]], float], weights: Sequence[float], most: int
) -> dict[int, float]:
    """Returns the rows with most of the terms, by their weight, and the newest of equal ones."""
    sums: dict[int, float] = {}
    for holding, worth in parts:
        for number, found in holding.items():
            for row in found:
                sums[row] = sums.get(row, 0.0) + worth * weights[number]
    return dict(nlargest(most, sums.items(), key=lambda one: (one[1], one[0])))


def _for_length(length: float) -> float:
    """Returns how much words count in a text of a length in relation to others: the longer, the less, as in bm25."""
    return (1 + _SATURATED) / (1 + _SATURATED * (1 - _OF_LENGTH + _OF_LENGTH * length))


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / max(len(numbers), 1) or 1.0


def _match(weighed: WeighedTerms, text: FoundText, places: Sequence[tuple[int, float]]) -> Match:
    at = local(text.at_us)
    dated = frozenset(n for n, term in enumerate(weighed.terms) if term.date is not None and term.date.holds(at))
    covered, held = 0.0, dated
    for place, _ in places:
        near = range(max(place - 1, text.first), min(place + 1, text.last) + 1)
        terms = dated.union(n for n, passages in weighed.passages.items() if not passages.isdisjoint(near))
        if (weight := weighed.share(terms)) > covered:
            covered, held = weight, terms
    order = sorted(places, key=lambda one: (-one[1], one[0]))
    top, in_all = (order[0][1], sum(score for _, score in order)) if order else (0.0, 0.0)
    return Match(text, top, in_all, 0.0, covered, held, tuple(place for place, _ in order[:_SHOWN]))


def _of_sessions(database: Database, weighed: WeighedTerms, texts: Collection[Match]) -> list[Match]:
    """Returns one match for each session and statement; of a session's texts the one that says it is shown.

    The words themselves say more than a summary of them.
    """
    sessions = rows.sessions_of(database, [one.text.artifact for one in texts if one.text.artifact is not None])
    groups: dict[object, list[Match]] = {}
    for one in texts:
        key = one.text.name if one.text.artifact is None else sessions.get(one.text.artifact, one.text.name)
        groups.setdefault(key, []).append(one)
    usual = _mean(map(_length, groups.values()))
    matches = []
    for found in groups.values():
        top = max(one.covered for one in found)
        shown = max(found, key=lambda one: (one.covered >= _NEARLY * top, one.text.is_transcript, one.said))
        matches.append(
            shown._replace(
                said=max(one.said for one in found),
                all_said=sum(one.all_said for one in found),
                whole=_whole(weighed, {one.text.first for one in found}) * _for_length(_length(found) / usual),
                covered=top,
            )
        )
    return matches


def _whole(weighed: WeighedTerms, texts: set[int]) -> float:
    """Returns the weight of the words that any of some texts says, or that tools printed there."""
    weight = 0.0
    for number, said in weighed.words.items():
        if not texts.isdisjoint(said):
            weight += weighed.weights[number]
        elif not texts.isdisjoint(weighed.printed[number]):
            weight += _OF_PRINTED * weighed.weights[number]
    return weight


def _length(found: Iterable[Match]) -> int:
    return sum(one.text.last - one.text.first + 1 for one in found)


def _with_common(database: Database, weighed: WeighedTerms, match: Match) -> Match:
    """Adds the words that are too common to find, where the best passage has them."""
    common = [n for n in range(len(weighed.terms)) if n not in weighed.passages and n not in match.terms]
    if not common or not match.places:
        return match
    text, place = match.text, match.places[0]
    near = [(max(place - 1, text.first), min(place + 1, text.last))]
    held = [n for n in common if rows.passages_with(database, weighed.terms[n].expression, near, 1)]
    return match._replace(covered=match.covered + weighed.share(held), terms=match.terms.union(held))


def _scored(matches: Sequence[Match]) -> list[Match]:
    """Returns the matches with their scores, the best first: each part in relation to the best of all.

    A statement is one passage, which is all of it. Of equal scores statements come first, then what is newer.
    """
    most = [max((part(one) for one in matches), default=0.0) or 1.0 for part in _PARTS]
    scored = []
    for one in matches:
        said, all_said, whole = (part(one) / of for part, of in zip(_PARTS, most, strict=True))
        if one.text.tier != "session":
            all_said = whole = said
        total = _OF_SAID * said + _OF_SUM * all_said + _OF_WHOLE * whole + _OF_COVERED * one.covered
        scored.append(one._replace(score=total / _OF_ALL))
    return sorted(
        scored, key=lambda one: (-round(one.score, 3), one.text.tier == "session", -one.text.at_us, one.text.name)
    )
