"""Finds the terms of a query in a text, and the passage in which most of them are close together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.recall.query import AKIN, Term
from signet_sync.text.word_forms import folded

REACH = 240  # characters of a passage: two or three sentences
_FAR = 0.3  # how much less a passage counts whose first and last word are that far apart
_SIDE_BY_SIDE = 12  # characters between two words of a phrase, which may have stop words between them
_BREAK = 60  # characters that the end of a sentence or line counts as
_MOST_SPANS = 2_000  # of one text
_ROUNDING = 1e-9  # sums of the same weights in another order differ by less
_NEEDLE = 3  # characters from which a text is selective enough to search for
_TOKEN = late(r"[^\W_]+")


# Where a term begins and ends, in characters; its number; its worth: 1 if it is as typed.
Span = tuple[int, int, int, float]


class QueryPassage(NamedTuple):
    """The best passage of a text: `weight` is that of its terms, less the farther apart they are; `terms` their worth.

    `start` is the place of its first term, None if the text contains none. `whole` and `held` are weight and terms of
    the entire text, `often` is how often it has each term, and `phrase` the weight of the best two terms that stand
    side by side as in the query.
    """

    weight: float
    start: int | None
    terms: Mapping[int, float]
    whole: float
    held: Mapping[int, float]
    often: Mapping[int, float]
    phrase: float = 0.0


class PassageFinder:
    """Finds the terms of a query in folded texts."""

    def __init__(self, terms: Sequence[Term], weights: Sequence[float]) -> None:
        """Takes `weights`, the terms' weights in the ranking."""
        self.weights = weights
        # Search for the terms of highest weight first: if a text has too many spans, those are kept.
        order = sorted(range(len(terms)), key=lambda number: -weights[number])
        self._searches = [_TermSearch(number, terms[number]) for number in order]

    @property
    def needles(self) -> list[str]:
        """Returns texts, in lower case; whatever contains a term contains one of its texts."""
        return [needle for search in self._searches for needle in search.needles]

    def spans(self, text: str) -> list[Span]:
        """Returns the spans of all terms in a text, in order; at most `_MOST_SPANS`."""
        low = folded(text)
        found: list[Span] = []
        for search in self._searches:
            search.add_spans(low, found)
        found.sort()
        return found

    def best(self, text: str, given: Mapping[int, float] | None = None) -> QueryPassage:
        """Returns the passage of highest weight; `given` terms, with their worth, count for every passage."""
        given = given or {}
        spans = self.spans(text)
        base = self._weight(given)
        if not spans:
            return QueryPassage(base, None, given, base, given, given)
        best, start, terms = base, None, given
        # What is within reach of a span: how often each term occurs, and their total weight.
        counts: dict[int, int] = {}
        within, end = base, 0
        for first, (begun, _, opening, _) in enumerate(spans):
            while end < len(spans) and spans[end][0] <= begun + REACH:
                term = spans[end][2]
                counts[term] = counts.get(term, 0) + 1
                if counts[term] == 1:
                    within += self.weights[term]
                end += 1
            if within > best - _ROUNDING:
                weight, held = self._passage(text, spans[first:end], given, base)
                if weight > best:
                    best, start, terms = weight, begun, held
            counts[opening] -= 1
            if not counts[opening]:
                within -= self.weights[opening]
        held = _most({term: worth for _, _, term, worth in sorted(spans, key=_worth)}, given)
        often = dict(given)
        for _, _, term, worth in spans:
            often[term] = often.get(term, 0.0) + worth
        return QueryPassage(best, start, terms, self._weight(held), held, often, self._phrase(spans))

    def _phrase(self, spans: Sequence[Span]) -> float:
        """Returns the weight of the heaviest two terms that follow each other as in the query."""
        return max(
            (
                self.weights[one] + self.weights[other]
                for (_, end, one, _), (start, _, other, _) in pairwise(spans)
                if other == one + 1 and start <= end + _SIDE_BY_SIDE
            ),
            default=0.0,
        )

    def _passage(
        self, text: str, near: Sequence[Span], given: Mapping[int, float], base: float
    ) -> tuple[float, Mapping[int, float]]:
        """Returns weight and terms of the best passage that begins at the first of some spans."""
        best, found = 0.0, given
        held = dict(given)
        weight = base
        start = near[0][0]
        for _, end, term, worth in near:
            more = worth - held.get(term, 0.0)
            if more <= 0:
                continue
            held[term] = worth
            weight += more * self.weights[term]
            apart = end - start + _BREAK * _breaks(text, start, end)
            close = base + (weight - base) * (1 - _FAR * min(apart / REACH, 1.0))
            if close > best:
                best, found = close, dict(held)
        return best, found

    def better(self, one: QueryPassage, other: QueryPassage) -> QueryPassage:
        """Returns the better passage of two texts that belong together, with weight and terms of both texts."""
        best = max(one, other, key=lambda passage: passage.weight)
        held = _most(one.held, other.held)
        return best._replace(
            whole=self._weight(held),
            held=held,
            often=_most(one.often, other.often),
            phrase=max(one.phrase, other.phrase),
        )

    def _weight(self, terms: Mapping[int, float]) -> float:
        return sum(self.weights[term] * worth for term, worth in terms.items())


def _most(one: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
    return {term: max(one.get(term, 0.0), other.get(term, 0.0)) for term in {*one, *other}}


_worth = itemgetter(3)


def _breaks(text: str, start: int, end: int) -> int:
    return text.count(". ", start, end) + text.count("\n", start, end)


class _TermSearch:
    """Finds one term: searches for the beginnings of its forms, then checks whether one of the forms is there."""

    def __init__(self, number: int, term: Term) -> None:
        self.number = number
        self.term = term
        self.worths = dict.fromkeys(term.akin, term.worth) | dict.fromkeys(term.phrases, 1.0)
        self.phrases = [re.compile(r"[\W_]+".join(phrase.split())) for phrase in term.phrases if " " in phrase]
        forms = [*term.akin, *(phrase.split()[0] for phrase in term.phrases), *filter(None, [term.prefix])]
        self.needles = ["".join(term.phrases[0].split())] if term.dense else _beginnings(forms)

    def add_spans(self, low: str, found: list[Span]) -> None:
        """Adds the spans of the term; `found` grows to at most `_MOST_SPANS`."""
        for needle in self.needles:
            start = low.find(needle)
            while start >= 0:
                if len(found) >= _MOST_SPANS:
                    return
                if self.term.dense:
                    found.append((start, start + len(needle), self.number, 1.0))
                elif start == 0 or not low[start - 1].isalnum():
                    self._add(low, start, found)
                start = low.find(needle, start + 1)

    def _add(self, low: str, start: int, found: list[Span]) -> None:
        """Adds the term if a word begins there, as the best of its forms that matches."""
        for phrase in self.phrases:
            match = phrase.match(low, start)
            if match is not None and not low[match.end() : match.end() + 1].isalnum():
                found.append((start, match.end(), self.number, 1.0))
                return
        word = _TOKEN.match(low, start)
        if word is None:
            return
        worth = self.worths.get(word[0], 0.0)
        if not worth and self.term.prefix and word[0].startswith(self.term.prefix):
            worth = AKIN
        if worth:
            found.append((start, word.end(), self.number, worth))


def _beginnings(forms: Sequence[str]) -> list[str]:
    """Returns a few texts with which all of the forms begin; three characters or more if the forms are that long."""
    found: list[str] = []
    for form in sorted(set(forms)):
        shared = _shared(found[-1], form) if found else ""
        if shared and len(shared) >= min(_NEEDLE, len(found[-1])):
            found[-1] = shared
        else:
            found.append(form)
    return found


def _shared(one: str, other: str) -> str:
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return one[:length]
