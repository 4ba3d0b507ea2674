"""Searches texts for many phrases at once, and cuts the phrases that a search may look for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from signet_sync.formats.lazy_pattern import late

LONGEST = 80  # characters of a phrase
# Of every occurrence of 23 bytes, eight begin at a multiple of 16, wherever it is.
_WORD, _STRIDE, SURE = 8, 16, 23
_SHORTEST = 12  # characters; taken only from a text that says nothing longer
_REDACTED = late(r"\[REDACTED:[^\]]*\]")
# What no encoder of JSON or HTML changes, however often a text was put inside another; but for letters beyond ASCII.
_PLAIN = late(r'[^"\\<>&\x00-\x1f\x7f]+')
_MARKUP = "#>*-+|`~ .()[]0123456789"


class Sieve:
    """Searches for any number of needles in one reading, at some 100 MB/s whatever their number.

    The first half of every 16 bytes of a text is taken as a number, and only needles that contain one of the numbers
    are searched for. Needles too short for that are searched for one by one, and should be few.
    """

    def __init__(self, needles: Iterable[bytes]) -> None:
        self._short: list[bytes] = []
        self._holding: dict[int, list[bytes]] = {}
        self.longest = 0
        for needle in sorted(set(needles)):
            self.longest = max(self.longest, len(needle))
            if len(needle) < SURE:
                self._short.append(needle)
                continue
            for at in range(len(needle) - _WORD + 1):
                self._holding.setdefault(int.from_bytes(needle[at : at + _WORD], sys.byteorder), []).append(needle)
        self._numbers = frozenset(self._holding)

    def find(self, text: bytes) -> set[bytes]:
        """Returns the needles that occur in a text."""
        likely = set(self._short)
        if self._numbers:
            words = memoryview(text)[: len(text) // _WORD * _WORD].cast("Q")
            for number in self._numbers.intersection(words[:: _STRIDE // _WORD].tolist()):
                likely.update(self._holding[number])
        return {needle for needle in likely if needle in text}


def phrases(text: str) -> Iterator[str]:
    """Yields a text line by line, in pieces that are unchanged inside a JSON string."""
    for part in _REDACTED.split(text):
        for match in _PLAIN.finditer(part):
            phrase = match[0].lstrip(_MARKUP)[:LONGEST].rstrip()
            if len(phrase) >= _SHORTEST:
                yield phrase
