"""Prepares a text for the rules: in plain characters, and the same in lower case as bytes, all at equal positions.

The different words of a text tell which literals it can hold.

The tables of the rules are read when they are first used: `labels.txt`, `grammar.txt`, `marks.txt`, `providers.txt`.
"""

import re
from collections.abc import Iterator
from functools import cache, cached_property
from hashlib import sha256
from typing import Any, NamedTuple

from signet_sync.formats.body import find_non_ascii, may_hold_unseen
from signet_sync.formats.lazy_pattern import late

# Everything but the letters of Latin-1 is a gap between words.
_LETTERS = bytes(code if chr(code).isalpha() else ord(" ") for code in range(256))


@cache
def _words_of(literals: tuple[str, ...]) -> list[tuple[str, frozenset[str], str]]:
    """Returns literals, each with its whole words and the longest part of a word: of `in "pass` `in` and `pass`."""
    found = []
    for literal in literals:
        gaps = literal.encode("latin-1").translate(_LETTERS).decode("latin-1")
        words = gaps.split()
        parts = [*(words[:1] if gaps[:1] != " " else ()), *(words[-1:] if gaps[-1:] != " " else ())]
        found.append((literal, frozenset(words).difference(parts), max(parts, key=len, default="")))
    return found


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
_NARROW = {
    **{chr(0xFF01 + n): chr(0x21 + n) for n in range(94)},
    **dict.fromkeys("\u3000\xa0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f", " "),
    **dict.fromkeys("“”„‟「」『』", '"'),
    "。": ".",
    "、": ",",
}


def plain_characters(text: str, beyond: str) -> str:
    """Returns a text of equal length in which plain characters stand for their look-alikes, and blanks for numbers."""
    # Ten times as fast as `translate`: a text has few of them.
    for character in filter(_NARROW.__contains__, beyond):
        text = text.replace(character, _NARROW[character])
    if "\t" in text or "→" in beyond:
        text = SHAPES.number.sub(lambda number: "\n" + " " * (len(number[0]) - 1), "\n" + text)[1:]
    return text


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
        self.given = text
        self.beyond = find_non_ascii(text)
        self.text = text = plain_characters(text, self.beyond)
        self.bytes = text.encode("latin-1", "replace")
        self.low = self.bytes.lower().decode("latin-1")
        # `a` for each character of a token, or of base64, a space for each other.
        self._run_map = self.bytes.translate(_RUNS)
        self.encoded_map = self.bytes.translate(_ENCODED_RUNS)
        self.line_widths = list(map(len, self.bytes.split(b"\n")))
        self.words: Any = None
        self._rest = (0, 0, "")
        self.refused = 0

    @cached_property
    def _words(self) -> frozenset[str]:
        low = self.low.encode("latin-1")
        # A long text has most of its pieces many times.
        low = b" ".join(frozenset(low.split())) if len(low) >= _LONG else low
        return frozenset(low.translate(_LETTERS).decode("latin-1").split())

    @cached_property
    def _words_text(self) -> str:
        return " ".join(self._words)

    def likely(self, literals: tuple[str, ...]) -> list[str]:
        """Returns those of some literals (lower case) whose words are in the text: few are looked for in all of it."""
        words, listing = self._words, self._words_text
        return [one for one, whole, part in _words_of(literals) if part in listing and whole <= words]

    def holds(self, *literals: str) -> bool:
        """Returns whether one of the literals (lower case) is in the text."""
        return any(literal in self.low for literal in self.likely(literals))

    @property
    def may_hide(self) -> bool:
        """Returns whether there could be a colour, another control character, or what nobody sees."""
        text = self.given
        if len(self.bytes.translate(None, _CONTROLS)) < len(text):
            return True
        return "\xa0" in self.beyond or may_hold_unseen(text, self.beyond)

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

    def find_base64_runs(self, least: int) -> Iterator[tuple[int, int]]:
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


_TABLES = "labels.txt", "grammar.txt", "marks.txt", "providers.txt"


@cache
def _raw(name: str) -> bytes:
    with open(f"{__file__.removesuffix('searched_text.py')}{name}", "rb") as table:
        return table.read()


def lines(name: str) -> Iterator[str]:
    """Yields the lines of a table that are no comments."""
    return (line for line in _raw(name).decode("utf-8").split("\n") if line and not line.startswith("#"))


@cache
def table_digest() -> str:
    """Returns sixteen hex digits that change with any byte of the tables."""
    return sha256(b"".join(map(_raw, _TABLES))).hexdigest()[:16]


# ── words ──


@cache
def _sections() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in lines("labels.txt"):
        if line.startswith("["):
            title = line.strip("[]")
        else:
            found[title] = (*found.get(title, ()), *(word.replace("_", " ") for word in line.split()))
    return found


def list_section(section: str) -> tuple[str, ...]:
    """Returns the words of a section."""
    return _sections()[section]


@cache
def set_of(section: str) -> frozenset[str]:
    """Returns the words of a section as a set."""
    return frozenset(list_section(section))


# ── patterns ──

_NAMED = late(r"\{\{([a-z_ ]+)\}\}")


@cache
def _patterns() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines("grammar.txt"):
        if not line.startswith(" "):
            name, _, line = line.partition(" ")
        found[name] = found.get(name, "") + line.strip(" ")
    return found


def pattern_text(name: str) -> str:
    """Returns a pattern of `grammar.txt` with what it refers to: other patterns, and sections of words as a choice."""

    def insert_pattern(other: re.Match[str]) -> str:
        return "|".join(list_section(other[1])) if other[1] in _sections() else pattern_text(other[1])

    return _NAMED.sub(insert_pattern, _patterns()[name])


class _Shapes:
    """The patterns of `grammar.txt` by their names, each compiled when it is first used."""

    def __getattr__(self, name: str) -> re.Pattern[str]:
        vars(self)[name] = pattern = re.compile(pattern_text(name))
        return pattern


SHAPES = _Shapes()
