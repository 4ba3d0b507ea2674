"""Prepares a text for the rules: in plain characters, and the same in lower case as bytes, all at equal positions."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from signet_sync.formats.invisible import beyond_ascii, may_hold_unseen
from signet_sync.text.secrets.tables import SHAPES
from signet_sync.text.secrets.vocabulary import (
    Vocabulary,
    count_of_ends,
    ends_of,
    later_ends,
    signs_in,
    signs_of,
    words_of,
)

# Characters of a token become one byte, all others another: runs are then found by one literal.
_RUNS = bytes(97 if chr(c).isascii() and (chr(c).isalnum() or chr(c) in "_-") else 32 for c in range(256))
_ENCODED_RUNS = bytes(97 if chr(c).isascii() and (chr(c).isalnum() or chr(c) in "+/") else 32 for c in range(256))
_LONG = 20_000
_CONTROLS = bytes((*range(9), *range(11, 32), *range(127, 160)))


# What a terminal obeys (ECMA-48): strings up to their end (titles, links), sequences, escapes. A C1 character opens one
# only with a parameter: elsewhere it is what another encoding left.
SEQUENCES = (
    r"\x1b[\]PX^_][^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)|\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|\x9b[0-?]{1,64}[ -/]{0,8}[@-~]|\x1b(?:[ -/]{1,8}[0-~]|[0-?DEMc\[\]\\])"
)

# What stands for a character of ASCII: its full-width form, other spaces, other quotes.
WIDE = "\uff01-\uff5e\u3000\xa0\u2000-\u200a\u202f\u201c-\u201f\u3001\u3002\u300c-\u300f"
_NARROW = {
    **{chr(0xFF01 + n): chr(0x21 + n) for n in range(94)},
    **dict.fromkeys("\u3000\xa0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f", " "),
    **dict.fromkeys("“”„‟「」『』", '"'),
    "。": ".",
    "、": ",",
}


def plain_characters(text: str, beyond: str) -> str:
    """Returns a text of equal length in which plain characters stand for their look-alikes, and blanks for numbers."""
    wide = list(filter(_NARROW.__contains__, beyond))
    if len(wide) > _FEW:
        text = text.translate({ord(character): plain for character, plain in _NARROW.items()})
    else:  # ten times as fast
        for character in wide:
            text = text.replace(character, _NARROW[character])
    if "\t" in text or "→" in beyond:
        text = SHAPES.number.sub(lambda number: "\n" + " " * (len(number[0]) - 1), "\n" + text)[1:]
    return text


class SecretSpan(NamedTuple):
    """A secret's position in a text, and the rule that found it."""

    start: int
    end: int
    rule: str


_FEW = 24  # literals that are found faster than a pattern
# So many candidates of a kind are judged one after the other, and one in so many characters thereafter: several times
# what any file has that is no dump of secrets and was not made to keep a machine busy. Of any other one as much as its
# value could be is removed, without a look at it.
_JUDGED, _APART, _REACH = 500, 100, 160
# After a crowd so many are missing: where they stand hardly less near, the next round would find another.
_RESTS = 10.0


class SearchedText:
    """A text and what several rules need of it.

    Bytes are searched three times as fast as a `str` that is not ASCII, and one byte per character keeps all positions.
    """

    def __init__(self, text: str) -> None:
        self.given = text
        self.beyond = beyond_ascii(text)
        self.text = text = plain_characters(text, self.beyond)
        self.bytes = text.encode("latin-1", "replace")
        self.low = self.bytes.lower().decode("latin-1")
        # `a` for each character of a token, or of base64, a space for each other.
        self._run_map = self.bytes.translate(_RUNS)
        self.encoded_map = self.bytes.translate(_ENCODED_RUNS)
        self.signs = signs_in(self.bytes)
        self.line_widths = list(map(len, self.bytes.split(b"\n")))
        self.is_long = len(text) >= _LONG
        self.words: Any = None
        self._ends: frozenset[bytes] = frozenset()
        self._words: frozenset[bytes] = frozenset()
        self._known = -1
        self._left: dict[str, tuple[float, int]] = {}
        self.crowd_list: list[tuple[int, int]] = []
        self._rest = (0, 0, "")
        self.refused = 0

    @property
    def ends(self) -> frozenset[bytes]:
        """The `ends_of` literals in the words of the text."""
        if self._known < 0:
            # A long text has most of its pieces many times.
            low = (
                b"\n".join(frozenset(self.low.encode("latin-1").split())).decode("latin-1")
                if self.is_long
                else self.low
            )
            self._words, vocabulary = words_of(low), Vocabulary.current()
            self._known, self._ends = vocabulary.known, vocabulary.ends_in(self._words)
        if self._known < (count := count_of_ends()):
            self._known, self._ends = count, self._ends | later_ends(self._words, self._known)
        return self._ends

    def holds(self, *literals: str) -> bool:
        """Returns whether one of the literals (lower case) is in the text."""
        return any(
            signs_of(literal) in self.signs and ends_of(literal) <= self.ends and literal in self.low
            for literal in literals
        )

    def has(self, literal: str) -> bool:
        """Returns whether a literal is in the text, looking for its signs first."""
        return signs_of(literal) in self.signs and literal in self.low

    @property
    def may_hide(self) -> bool:
        """Returns whether there could be a colour, another control character, or what nobody sees."""
        text = self.given
        if len(self.bytes.translate(None, _CONTROLS)) < len(text):
            return True
        return "\xa0" in self.beyond or may_hold_unseen(text, self.beyond)

    def is_crowded(self, kind: str, place: int, end: int = 0, cost: int = 1) -> bool:
        """Counts a candidate; returns whether too many are before it: then `crowds` has it and what follows."""
        left, last = self._left.get(kind, (float(_JUDGED), 0))
        if self.is_in_crowd(place, end):
            self._left[kind] = left, place
            return True
        left = min(left + (place - last if place > last else place) / _APART, _JUDGED) - cost
        if left < 0:
            self.crowd_list.append((place, max(end, place + _REACH)))
            left = -_RESTS
        self._left[kind] = left, place
        return left < 0

    @property
    def crowd_end(self) -> int:
        """Returns where the last stretch ends that is removed."""
        return self.crowd_list[-1][1] if self.crowd_list else 0

    def is_in_crowd(self, place: int, end: int = 0) -> bool:
        """Returns whether a candidate stands in the last stretch that is removed: it then reaches as far as its value."""
        first, last = self.crowd_list[-1] if self.crowd_list else (0, -1)
        if not first <= place <= last:
            return False
        self.crowd_list[-1] = first, max(last, end, place + _REACH)
        return True

    def is_amid_crowd(self, place: int) -> bool:
        """Returns whether the last stretch that is removed goes on for longer than a value."""
        first, last = self.crowd_list[-1] if self.crowd_list else (0, -1)
        return first <= place <= last - _REACH // 2

    def crowds(self) -> Iterator[SecretSpan]:
        """Yields the stretches with more candidates than are judged; each is told once."""
        crowds, self.crowd_list = sorted(self.crowd_list), []
        done = 0
        for start, end in crowds:
            rest = SHAPES.rest_of_word.match(self.text, end)
            end = rest.end() if rest else len(self.text)
            if end > done:
                yield SecretSpan(max(start, done), end, "crowd")
                done = end

    def places(self, literal: str, condition: re.Pattern[str] | None = None) -> Iterator[int]:
        """Yields the positions of a literal (lower case), or those where a pattern that begins so matches."""
        if condition is not None:
            yield from (match.start() for match in self.matches(condition, (literal,)))
            return
        find = self.low.find
        at = find(literal)
        while at >= 0:
            yield at
            at = find(literal, at + 1)

    def matches(self, pattern: re.Pattern[str], literals: tuple[str, ...]) -> Iterator[re.Match[str]]:
        """Yields matches of a lower-case pattern, each of which holds one of the literals: they are found faster."""
        if not self.holds(*literals):
            return iter(())
        return pattern.finditer(self.low)

    def last_of_line(self, at: int) -> str:
        """Returns the last character, no blank, of what is left of a line (or up to a backslash); read once a line."""
        start, end, last = self._rest
        if not start <= at < end:
            end = at + 1024
            for mark in "\n\\":
                found = self.text.find(mark, at, end)
                end = found if found >= 0 else end
            last = self.text[at:end].rstrip()[-1:]
            self._rest = at, end, last
        return last

    def runs(self, least: int) -> Iterator[tuple[int, int]]:
        """Yields the runs of at least so many letters, digits, `_` and `-`."""
        return _runs(self._run_map, least)

    def encoded_runs(self, least: int) -> Iterator[tuple[int, int]]:
        """Yields the runs of at least so many characters of base64."""
        return _runs(self.encoded_map, least)

    def has_run(self, least: int) -> bool:
        """Returns whether there is such a run."""
        return b"a" * least in self._run_map


def _runs(folded: bytes, least: int) -> Iterator[tuple[int, int]]:
    find, run = folded.find, b"a" * least
    start = find(run)
    while start >= 0:
        end = find(b" ", start + least)
        if end < 0:
            end = len(folded)
        yield start, end
        start = find(run, end)
