"""Prepares a text for the rules: the text itself, and the same in lower case as bytes, at equal positions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

# Characters of a token become one byte, all others another: runs are then found by one literal.
_RUNS = bytes(97 if chr(c).isascii() and (chr(c).isalnum() or chr(c) in "_-") else 32 for c in range(256))
_ENCODED_RUNS = bytes(97 if chr(c).isascii() and (chr(c).isalnum() or chr(c) in "+/") else 32 for c in range(256))
SHORT = 2000


def has_run(raw: bytes) -> bool:
    """Returns whether a run is as long as a token's, or as encoded text."""
    if len(raw) < 16:
        return False
    if b"aaaaaaaaaaaaaaaa" in raw.translate(_RUNS):
        return True
    return len(raw) > 39 and b"a" * 40 in raw.translate(_ENCODED_RUNS)


class SecretSpan(NamedTuple):
    """A secret's position in a text, and the rule that found it."""

    start: int
    end: int
    rule: str


class SearchedText:
    """A text and what several rules need of it.

    Bytes are searched three times as fast as a `str` that is not ASCII, and one byte per character keeps all positions.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.bytes = text.encode("latin-1", "replace")
        self.low = self.bytes.lower().decode("latin-1")
        self.is_short = len(text) < SHORT
        self.words: Any = None

    def places(self, literal: str) -> Iterator[int]:
        """Yields the positions of a literal (lower case)."""
        find, step = self.low.find, len(literal)
        at = find(literal)
        while at >= 0:
            yield at
            at = find(literal, at + step)

    def matches(self, pattern: re.Pattern[str], literals: tuple[str, ...]) -> Iterator[re.Match[str]]:
        """Yields matches of a lower-case pattern; in a short text only if one of the literals occurs, too."""
        if self.is_short:
            for literal in literals:
                if literal in self.low:
                    break
            else:
                return iter(())
        return pattern.finditer(self.low)

    def runs(self, least: int) -> Iterator[tuple[int, int]]:
        """Yields the runs of at least so many letters, digits, `_` and `-`."""
        return _runs(self._run_map, least)

    def encoded_runs(self, least: int) -> Iterator[tuple[int, int]]:
        """Yields the runs of at least so many characters of base64."""
        return _runs(self.encoded_map, least)

    def has_run(self, least: int) -> bool:
        """Returns whether there is such a run."""
        return b"a" * least in self._run_map

    def has_encoded_run(self, least: int) -> bool:
        """Returns whether there is such a run."""
        return b"a" * least in self.encoded_map

    @cached_property
    def encoded_map(self) -> bytes:
        """Returns `a` for each character of base64, a space for each other."""
        return self.bytes.translate(_ENCODED_RUNS)

    @cached_property
    def _run_map(self) -> bytes:
        return self.bytes.translate(_RUNS)


def _runs(folded: bytes, least: int) -> Iterator[tuple[int, int]]:
    find, run = folded.find, b"a" * least
    start = find(run)
    while start >= 0:
        end = find(b" ", start + least)
        if end < 0:
            end = len(folded)
        yield start, end
        start = find(run, end)
