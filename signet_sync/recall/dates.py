"""Finds the dates that a query names, so that a session's own date counts as words of what was said in it."""

from collections.abc import Iterator
from datetime import datetime
from typing import Literal, NamedTuple

from signet_sync.formats.lazy_pattern import late

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SEASONS = {"winter": (12, 1, 2), "spring": (3, 4, 5), "summer": (6, 7, 8), "autumn": (9, 10, 11), "fall": (9, 10, 11)}
_READ = 2_000  # characters of a query
_WORD = late(r"[^\W_]+")
# "May" is a month beside a number or behind such a word; else it is mostly a verb.
_OF_DATE = frozenset(
    ("in", "of", "since", "during", "until", "before", "after", "by", "last", "this", "next", "early", "late", "mid")
)


class DateWord(NamedTuple):
    """A word of a query that names a date: the word, folded, and the values of a part of a date that it stands for."""

    word: str
    part: Literal["year", "month", "weekday", "day"]
    values: tuple[int, ...]

    def holds(self, at: datetime) -> bool:
        """Returns whether a moment is in that date."""
        return (at.weekday() if self.part == "weekday" else getattr(at, self.part)) in self.values


def date_words(text: str) -> Iterator[DateWord]:
    """Yields the months, years, weekdays, seasons and days of a month that a text names."""
    words = [word.casefold() for word in _WORD.findall(text[:_READ])]
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        month = _month(word)
        if month and (word != "may" or before in _OF_DATE or before[:1].isdigit() or after[:1].isdigit()):
            yield DateWord(word, "month", (month,))
        elif len(word) == 4 and word.isascii() and word.isdigit() and 1970 <= int(word) < 2100:
            yield DateWord(word, "year", (int(word),))
        elif word in _DAYS:
            yield DateWord(word, "weekday", (_DAYS.index(word),))
        elif word in _SEASONS:
            yield DateWord(word, "month", _SEASONS[word])
        elif (day := _day(word)) and (_month(before) or _month(after)):
            yield DateWord(word, "day", (day,))


def _month(word: str) -> int:
    """Returns the number of a month that is written out or with three letters; 0 for another word."""
    names = _MONTHS if word in _MONTHS else [name[:3] for name in _MONTHS]
    return names.index(word) + 1 if word in names else 0


def _day(word: str) -> int:
    plain = word.removesuffix("st").removesuffix("nd").removesuffix("rd").removesuffix("th")
    return int(plain) if plain.isascii() and plain.isdigit() and 0 < int(plain) < 32 else 0
