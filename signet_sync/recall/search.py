"""Finds the sessions and statements that answer a question: one score for `recall`, MCP, the page and prompts.

Words weigh by rarity among the texts of the agent: bm25 of FTS5 would count those of others. A text is ranked by all of
its rows, as a whole, and most by coverage: the share of the question within a row of full text. Many words in one row
say more than the same words in many, and what a tool printed beside what is said helps to find it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from heapq import nlargest
from math import log
from operator import attrgetter, itemgetter
from typing import NamedTuple

from signet_sync.formats.timestamps import local
from signet_sync.recall.query import Question, Term
from signet_sync.recall.store import rows
from signet_sync.recall.store.rows import FoundText, Period
from signet_sync.storage.database.connection import Database

MOST_PASSAGES, MOST_FOUND = 400, 40
COMMON = 3_000  # passages; a word of more of them finds nothing, but counts
_NEWEST = 2_000  # texts that are searched where every word is common
_OF_SAID, _OF_WHOLE, _OF_COVERED = 1.0, 1.0, 3.0
_OF_ALL = _OF_SAID + _OF_WHOLE + _OF_COVERED
_LEAST = 0.3  # weight of a word that every text has
_OF_PRINTED, _BESIDE = 0.2, 0.6  # of the weight of a word that only a tool printed: in the text, behind this row
_SATURATED, _OF_LENGTH = 1.2, 0.3  # constants of bm25; passages differ little in length
_SHOWN = 2  # rows of a text
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

    Those that find have the passages with them, in order; `printed` has those behind which tools printed them.
    """

    terms: Sequence[Term]
    weights: Sequence[float]
    passages: Mapping[int, Sequence[int]]
    printed: Mapping[int, Sequence[int]]
    heaviest: float  # weight of a plain word that one text contains

    def share(self, terms: Iterable[int]) -> float:
        """Returns how much of the question's weight some terms have, from 0 to 1."""
        return sum(map(self.weights.__getitem__, terms)) / (sum(self.weights) or 1.0)


class Match(NamedTuple):
    """A session or statement that answers, and the text of it that is shown.

    `said`, `all_said` and `whole` weigh its words for its length: of the best row, of all, of the whole text.
    `covered` is the share of the question that one row of full text has, `terms` which of it; `near` counts what
    tools printed behind it too. `score` is from 0 to 1.
    """

    text: FoundText
    said: float
    all_said: float
    whole: float
    near: float
    covered: float
    terms: frozenset[int]
    places: tuple[int, ...]
    score: float = 0.0


class _Row(NamedTuple):
    """A row of full text: its first passage, weight, and which terms are said in it or printed behind it."""

    place: int
    weight: float
    said: set[int]
    printed: set[int]


_PARTS: tuple[Callable[[Match], float], ...] = (attrgetter("said"), attrgetter("all_said"), attrgetter("whole"))


def search(
    database: Database, question: Question, within: Within, most: int = MOST_FOUND
) -> tuple[WeighedTerms, list[Match]]:
    """Returns the weighed terms, and the best sessions and statements, at most `most`, each once."""
    ranges = rows.ranges(database, within.agent_id, within.period, private=within.private, statements=within.statements)
    whole = within.private and not within.statements and within.period is None
    texts = rows.count_all(database, within.agent_id) if whole else rows.count(database, ranges)
    weighed = weigh(database, question, ranges, texts, within.project, COMMON)
    if not weighed.passages and weighed.terms:  # every word is common
        newest = rows.newest(database, ranges, _NEWEST)
        weighed = weigh(database, question, newest, rows.count(database, newest), within.project, -1)
    found = [
        one for one in _of_sessions(database, weighed, _matches(database, weighed)) if within.holds(one.text.at_us)
    ]
    best = _with_common(database, weighed, _scored(found)[:most])
    return weighed, _scored(best)


def weigh(
    database: Database,
    question: Question,
    ranges: Sequence[tuple[int, int]],
    texts: int,
    project: str | None,
    most: int,
) -> WeighedTerms:
    """Weighs the terms by rarity among the `texts` of some ranges; words that no text has are replaced by similar ones.

    A term of more than `most` passages finds none; -1 means that every term finds.
    """
    limit = most + 1 if most >= 0 else -1
    terms, weights = list(question.terms), []
    passages, printed = {}, {}
    for number, term in enumerate(question.terms):
        found = rows.passages_with(database, term, ranges, limit, project)
        printing = rows.printed_with(database, term, ranges, COMMON)
        if not found and not printing and term.plain and (alike := rows.spelled_like(database, term.forms[0])):
            term = terms[number] = term._replace(forms=(*term.forms, *alike))
            found = rows.passages_with(database, term, ranges, limit, project)
        weights.append(term.worth * rarity(rows.minutes(found), texts))
        if len(found) <= most or most < 0:
            passages[number], printed[number] = found, printing
    return WeighedTerms(terms, weights, passages, printed, rarity(1, texts))


def rarity(holding: int, texts: int) -> float:
    """Returns the weight of a word that `holding` of `texts` contain."""
    return _LEAST + log(1 + (max(texts - holding, 0) + 0.5) / (holding + 0.5))


def _matches(database: Database, weighed: WeighedTerms) -> list[Match]:
    """Returns the texts whose passages, or whose words as a whole, have most of the question."""
    best = _best_passages(weighed)
    said, printed = _terms_of(weighed.passages, best), _terms_of(weighed.printed, best)
    placed = list(rows.texts_of(database, list(best)))
    usual = _mean(length for _, _, length in placed)
    ranked: dict[FoundText, list[_Row]] = {}
    for text, place, length in placed:
        row = _Row(place, best[place] ** 2 * _for_length(length / usual), said[place], printed[place])
        ranked.setdefault(text, []).append(row)
    return [_match(weighed, text, some) for text, some in ranked.items()]


def _best_passages(weighed: WeighedTerms) -> dict[int, float]:
    """Returns the passages with most of the terms, by their weight, and the newest of equal ones."""
    sums: dict[int, float] = {}
    for number, found in weighed.passages.items():
        weight = weighed.weights[number]
        for place in found:
            sums[place] = sums.get(place, 0.0) + weight
        for place in {*weighed.printed[number]}.difference(found) if weighed.printed[number] else ():
            sums[place] = sums.get(place, 0.0) + _BESIDE * weight
    return dict(nlargest(MOST_PASSAGES, sums.items(), key=itemgetter(1, 0)))


def _terms_of(passages: Mapping[int, Sequence[int]], best: Iterable[int]) -> dict[int, set[int]]:
    """Returns the terms of each of the best passages."""
    held: dict[int, set[int]] = {place: set() for place in best}
    for number, found in passages.items():
        for place in held.keys() & found:
            held[place].add(number)
    return held


def _for_length(length: float) -> float:
    """Returns how much words count in a text of a length in relation to others: the longer, the less, as in bm25."""
    return (1 + _SATURATED) / (1 + _SATURATED * (1 - _OF_LENGTH + _OF_LENGTH * length))


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return sum(numbers) / max(len(numbers), 1) or 1.0


def _match(weighed: WeighedTerms, text: FoundText, found: Sequence[_Row]) -> Match:
    dates = [(number, term.date) for number, term in enumerate(weighed.terms) if term.date is not None]
    dated = frozenset(number for number, date in dates if date.holds(local(text.at_us)))
    near, covered, held = 0.0, 0.0, dated
    for row in found:
        terms = dated | row.said
        weight = weighed.share(terms)
        near = max(near, weight + _BESIDE * weighed.share(row.printed - terms))
        if weight > covered:
            covered, held = weight, terms
    order = sorted(found, key=lambda row: (-row.weight, row.place))
    top, in_all = order[0].weight, sum(row.weight for row in order)
    return Match(text, top, in_all, 0.0, near, covered, held, tuple(row.place for row in order[:_SHOWN]))


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
                whole=_whole(weighed, found) * _for_length(_length(found) / usual),
                near=max(one.near for one in found),
                covered=top,
            )
        )
    return matches


def _whole(weighed: WeighedTerms, found: Sequence[Match]) -> float:
    """Returns the weight of the words that any of some texts says, or that tools printed there."""
    weight = 0.0
    for number, said in weighed.passages.items():
        if any(_any_between(said, one.text.first, one.text.last + 1) for one in found):
            weight += weighed.weights[number]
        elif any(_any_between(weighed.printed[number], one.text.first, one.text.last + 1) for one in found):
            weight += _OF_PRINTED * weighed.weights[number]
    return weight


def _any_between(numbers: Sequence[int], first: int, end: int) -> bool:
    place = bisect_left(numbers, first)
    return place < len(numbers) and numbers[place] < end


def _length(found: Iterable[Match]) -> int:
    return sum(one.text.last - one.text.first + 1 for one in found)


def _with_common(database: Database, weighed: WeighedTerms, matches: Sequence[Match]) -> list[Match]:
    """Adds the words that are too common to find, where the best passages have them."""
    held: dict[int, set[int]] = {}
    places = sorted(place for one in matches for place in one.places[:1])
    for number, term in enumerate(weighed.terms):
        if number not in weighed.passages:
            for place in rows.among(database, term, places):
                held.setdefault(place, set()).add(number)
    added = []
    for one in matches:
        more = held.get(one.places[0], set()) - one.terms if one.places else set()
        share = weighed.share(more)
        added.append(one._replace(near=one.near + share, covered=one.covered + share, terms=one.terms | more))
    return added


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
        total = _OF_SAID * all_said + _OF_WHOLE * whole + _OF_COVERED * one.near
        scored.append(one._replace(score=total / _OF_ALL))
    return sorted(
        scored, key=lambda one: (-round(one.score, 3), one.text.tier == "session", -one.text.at_us, one.text.name)
    )
