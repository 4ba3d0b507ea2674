"""Parses a question into terms, each in the forms that a text may contain; cuts snippets of texts around them.

Dates that a question names are words too.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from heapq import nlargest
from itertools import islice
from typing import Literal, NamedTuple
from unicodedata import normalize

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.index_words import (
    DENSE,
    FUNCTION_WORDS,
    STOP_WORDS,
    drop_marks,
    fold,
    prefix_of,
    word_phrases,
)
from signet_sync.text.memory import glossary_terms

MOST_READ = 20_000  # characters of a question
MOST_TERMS = 30
_MOST_PARTS, _LONGEST = 8, 64  # of one word (`src/index/retry.py` has four), characters of a part
_MOST_CONCEPTS = 3  # terms of the glossary in one word: `chatgpt` finds `gpt`
_DATED = 2_000  # characters of a question that may name dates

_TOKEN = late(r"[^\W_]+")
_RUN = late(f"[{DENSE}]+|[^{DENSE}]+")
# How much a word of a question counts that says next to nothing, and a part of a word (`retry.py`).
_OF_STOP_WORD, _OF_PART = 0.3, 0.7
_SHORTENED = frozenset({"s", "t", "re", "ll", "ve", "d", "m"})  # of what's, don't, we're

SNIPPET = 200  # characters
LONGEST_TURN = 300  # characters of a turn that is shown whole
_CODE_FENCE = late(r"^[ ]{0,3}(?:`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_HEADING = late(r"(?:^|(?<=\s))#{1,6} ", re.MULTILINE)

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SEASONS = {"winter": (12, 1, 2), "spring": (3, 4, 5), "summer": (6, 7, 8), "autumn": (9, 10, 11), "fall": (9, 10, 11)}
# "May" is a month beside a number or behind such a word; else it is mostly a verb.
_OF_DATE = frozenset(
    ("in", "of", "since", "during", "until", "before", "after", "by", "last", "this", "next", "early", "late", "mid")
)
_DAY = late(r"(\d{1,2})(?:st|nd|rd|th)?", re.ASCII)


class DateWord(NamedTuple):
    """A word of a query that names a date: the word, folded, and the values of a part of a date that it stands for."""

    word: str
    part: Literal["year", "month", "weekday", "day"]
    values: tuple[int, ...]

    def holds(self, at: datetime) -> bool:
        return (at.weekday() if self.part == "weekday" else getattr(at, self.part)) in self.values


def date_words(text: str) -> Iterator[DateWord]:
    """Yields the months, years, weekdays, seasons and days of a month that a text names."""

    def month_of(word: str) -> int:
        """Returns the number of a month that is written out or with three letters; 0 for another word."""
        return next((number for number, name in enumerate(_MONTHS, 1) if word in (name, name[:3])), 0)

    words = [word.casefold() for word in _TOKEN.findall(text[:_DATED])]
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        month, day = month_of(word), _DAY.fullmatch(word)
        if month and (word != "may" or before in _OF_DATE or before[:1].isdigit() or after[:1].isdigit()):
            yield DateWord(word, "month", (month,))
        elif len(word) == 4 and word.isascii() and word.isdigit() and 1970 <= int(word) < 2100:
            yield DateWord(word, "year", (int(word),))
        elif word in _DAYS:
            yield DateWord(word, "weekday", (_DAYS.index(word),))
        elif word in _SEASONS:
            yield DateWord(word, "month", _SEASONS[word])
        elif day and 0 < int(day[1]) < 32 and (month_of(before) or month_of(after)):
            yield DateWord(word, "day", (int(day[1]),))


class Term(NamedTuple):
    """A word of a question, a part of one, or two characters of one in Chinese, Japanese or Korean.

    `word` numbers the word it belongs to, `worth` is how much it counts. `forms` are folded tokens, all of any of
    which a text may contain; the first is the word as typed. What begins with `prefix` counts too. `date` is the date
    that it names.
    """

    word: int
    forms: tuple[str, ...]
    worth: float = 1.0
    prefix: str = ""
    date: DateWord | None = None

    @property
    def needle(self) -> str:
        """Returns what a folded text contains where it contains a form of the word."""
        first = self.forms[0].partition(" ")[0]
        return (
            self.forms[0].replace(" ", "")
            if not (first.isascii() and first.isalpha()) or len(first) < 5
            else first[: max(4, len(first) - 3)]
        )


def find_needle(needle: str, text: str) -> int:
    """Returns where a folded text has it, -1 if it has not; a number is not in a longer one."""
    place, size = text.find(needle), len(needle)
    while place >= 0 and (
        (needle[0].isdecimal() and text[max(place - 1, 0) : place].isdecimal())
        or (needle[-1].isdecimal() and text[place + size : place + size + 1].isdecimal())
    ):
        place = text.find(needle, place + 1)
    return place


class Question(NamedTuple):
    """The terms of a question in order, and their number of words; `common` means that all are stop words."""

    terms: tuple[Term, ...]
    words: int
    common: bool


class _Word(NamedTuple):
    """A word as `typed`, and its forms as tokens; `dense` ones are of scripts without spaces."""

    typed: str
    forms: tuple[tuple[str, ...], ...]
    dense: bool

    def is_among(self, words: frozenset[str]) -> bool:
        first, *rest = self.forms[0]
        return first in words and _SHORTENED.issuperset(rest)

    @property
    def weight(self) -> tuple[bool, int]:
        """Sorts names and numbers before other words, long ones before short ones."""
        whole = "".join(self.forms[0])
        return len(self.forms[0]) > 1 or len(self.forms) > 1 or not whole.isalpha(), len(whole)

    @property
    def pairs(self) -> list[str]:
        """Returns every two adjacent characters, each pair once; a single character as it is."""
        piece = self.forms[0][0]
        return list(
            dict.fromkeys(piece[place : place + 2] for place in range(max(1, min(len(piece), MOST_TERMS + 1) - 1)))
        )


def read(text: str, *, parts: bool = True) -> Question:
    """Parses a text, without stop words unless it has no others; at most `MOST_TERMS` terms.

    The parts of compounds are terms of their own, or are left out. If there are more, names and numbers are kept first,
    then the longer words. Total, linear, bounded.
    """
    typed = normalize("NFC", text[:MOST_READ].encode("utf-8", "replace").decode("utf-8"))
    words = list({word.forms[0]: word for word in _split_words(typed)}.values())
    dates = {date.word: date for date in date_words(typed)}
    important = [word for word in words if not word.is_among(FUNCTION_WORDS) or word.forms[0][0] in dates]
    most = nlargest(MOST_TERMS, important or words, key=lambda word: word.weight)
    kept = [word for word in important or words if word in most]
    terms: list[Term] = []
    for number, word in enumerate(kept):
        first, *more = word.forms[0]
        if word.dense:
            pairs = word.pairs
            terms += [Term(number, (pair,), 1 / len(pairs), pair if len(pair) == 1 else "") for pair in pairs]
            continue
        worth = _OF_STOP_WORD if word.is_among(STOP_WORDS) else 1.0
        # Concepts in the word, as the index has them: each one token.
        concepts = [token for token, *rest in map(_tokens, glossary_terms(word.typed, _MOST_CONCEPTS)) if not rest]
        forms = dict.fromkeys((*map(" ".join, word.forms), *concepts))
        terms.append(Term(number, tuple(forms), worth, "" if more else prefix_of(first), dates.get(next(iter(forms)))))
    for number, word in enumerate(kept if parts else ()):
        if len(word.forms[0]) > 1:  # a compound, whose parts a text may have apart
            terms += [Term(number, (one,), _OF_PART) for one in dict.fromkeys(word.forms[0]) if one not in STOP_WORDS]
    terms = terms[:MOST_TERMS]
    return Question(tuple(terms), len({term.word for term in terms}), all(word.is_among(STOP_WORDS) for word in words))


def _split_words(text: str) -> Iterator[_Word]:
    for typed in dict.fromkeys(text.split()):
        for run in (typed[:1000],) if typed.isascii() else _RUN.findall(typed[:1000]):
            if not run.isascii() and re.match(f"[{DENSE}]", run):
                piece = drop_marks(run)
                yield _Word(piece, ((piece,),), dense=True)
            else:
                forms = (tuple(_tokens(phrase)) for phrase in word_phrases(run))
                if distinct := tuple(dict.fromkeys(form for form in forms if form)):
                    yield _Word(run, distinct, dense=False)


def _tokens(phrase: str) -> list[str]:
    return [fold(match[0][:_LONGEST]) for match in islice(_TOKEN.finditer(phrase), _MOST_PARTS)]


# ── snippets: a piece of a text around the words of a question, on one line ──


def snippet(content: str, sentence: str, query: str) -> str:
    """Returns about 200 characters with most of the query's words, on one line; the sentence if the text has none."""
    needles = {term.needle for term in read(query).terms}
    for text in (content, sentence):
        low = fold(text)
        found = [(place, len(needle)) for needle in needles if (place := find_needle(needle, low)) >= 0]
        if found:
            # Where the densest group begins; of equal ones that with the longest word.
            dense = max(found, key=lambda hit: (sum(0 <= p - hit[0] < SNIPPET // 2 for p, _ in found), hit[1], -hit[0]))
            return cut_around(text, dense[0])
    return cut_around(sentence or content, 0)


def cut_around(text: str, place: int, width: int = SNIPPET) -> str:
    """Returns about `width` characters around a place, on one line, with `…` where text is cut before or after."""
    start = max(place - width // 3, 0)
    if start:
        start = text.find(" ", start, place) + 1 or start
    piece = " ".join(text[start : start + width].split())
    if not piece.isprintable():
        piece = "".join(c if c.isprintable() else " " for c in piece)
    return ("…" if start else "") + piece + ("…" if start + width < len(text) else "")


def turn_text(said: str, place: int) -> str:
    """Returns a turn's words on one line: all of a short one, else the part around a place.

    Nothing in it looks like the head of another turn, or like the gap that we leave between two.
    """
    for mark in (_HEADING, _CODE_FENCE):  # blanks instead, so that the place stays
        said = mark.sub(lambda found: " " * len(found[0]), said)
    said = said.replace("…", " ")
    said = f"   {said[3:]}" if said.startswith(" · ") else said
    plain = " ".join(said.split())
    return plain if len(plain) <= LONGEST_TURN else cut_around(said, place, LONGEST_TURN)
