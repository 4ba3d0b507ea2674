"""Prepares a text for the rules: in plain characters, and the same in lower case as bytes, all at equal positions.

The words of a text tell which literals it can hold: most words were seen before, and need no second look.

The tables of the rules are read when they are first used: `labels.txt`, `grammar.txt`, `marks.txt`, `providers.txt`.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar

from signet_sync.formats.body import beyond_ascii, may_hold_unseen
from signet_sync.formats.lazy_pattern import late

_Thing = TypeVar("_Thing")

# Everything but the letters of Latin-1 is a gap between words.
_LETTERS = bytes(code if chr(code).isalpha() else ord(" ") for code in range(256))
_NO_SIGNS = bytes(code for code in range(256) if chr(code).isalpha() or chr(code).isspace())
# Of every literal that was asked for.
_ENDS: dict[bytes, None] = {}
_MOST = 30_000  # words: some megabytes


def words_of(low: str) -> list[bytes]:
    """Returns the words of a text in lower case, each as often as it is there."""
    return low.encode("latin-1", "replace").translate(_LETTERS).split()


def signs_in(low: bytes) -> bytes:
    """Returns what is left of a text without letters and blanks: little, in which a literal's own signs are soon found."""
    return low.translate(None, _NO_SIGNS)


@cache
def signs_of(literal: str) -> bytes:
    """Returns the signs of a literal."""
    return signs_in(literal.encode("latin-1"))


@cache
def ends_of(literal: str) -> frozenset[bytes]:
    r"""Returns what stands in the words of a text that holds a literal: of `log in`, `log\n` and `\nin`."""
    words = literal.encode("latin-1").translate(_LETTERS)
    ends = [b"\n%b\n" % word for word in words.split()]
    if ends and not words.startswith(b" "):
        ends[0] = ends[0].removeprefix(b"\n")
    if ends and not words.endswith(b" "):
        ends[-1] = ends[-1].removesuffix(b"\n")
    _ENDS.update(dict.fromkeys(ends))
    return frozenset(ends)


class ByEnds(Generic[_Thing]):
    """Things in order, each found by the words of its literal; one whose literal has none always is."""

    def __init__(self, things: Iterable[tuple[str, _Thing]]) -> None:
        self._things: list[_Thing] = []
        self._always: list[int] = []
        self._of: dict[bytes, list[tuple[int, frozenset[bytes]]]] = {}
        for number, (literal, thing) in enumerate(things):
            self._things.append(thing)
            if ends := ends_of(literal):
                self._of.setdefault(max(ends, key=len), []).append((number, ends))
            else:
                self._always.append(number)

    def may_be_in(self, ends: frozenset[bytes]) -> list[_Thing]:
        """Returns those whose literals a text may hold that has these ends of literals."""
        numbers = [number for end in ends for number, wanted in self._of.get(end, ()) if wanted <= ends]
        return [self._things[number] for number in sorted(numbers + self._always)]


def count_of_ends() -> int:
    """Returns how many ends of literals were asked for."""
    return len(_ENDS)


def later_ends(words: Iterable[bytes], known: int) -> set[bytes]:
    """Returns which ends of literals are in some words, of those that were asked for after the first `known`."""
    listing = b"\n".join((b"", *words, b""))
    return {end for end in islice(_ENDS, known, None) if end in listing}


class Vocabulary:
    """The words of texts, and the ends of literals in each.

    Threads share one: a word is seen when all is known of it.
    """

    def __init__(self) -> None:
        self.known = len(_ENDS)
        # What a whole word is is found by its hash.
        self._wholes = {end[1:-1]: end for end in _ENDS if end.startswith(b"\n") and end.endswith(b"\n")}
        self._ends = tuple(_ENDS.keys() - self._wholes.values())
        self._plain: set[bytes] = set()  # words without any
        self._having: dict[bytes, frozenset[bytes]] = {}

    @classmethod
    def current(cls) -> "Vocabulary":
        """Returns the one that knows every literal; a new one if it has grown large."""
        global _current
        if _current.known < len(_ENDS) or len(_current._plain) > _MOST:
            _current = cls()
        return _current

    def ends_in(self, words: Iterable[bytes]) -> frozenset[bytes]:
        """Returns the ends of literals in some words."""
        plain = self._plain
        rest = {word for word in words if word not in plain}  # few: a set of all words would take twice as long
        if new := {word for word in rest if word not in self._having}:
            listing = b"\n".join((b"", *new, b""))
            ends = {word: {self._wholes[word]} for word in self._wholes.keys() & new}
            for end in self._ends:
                at = listing.find(end)
                while at >= 0:
                    stop = listing.index(b"\n", at + len(end) - 1)
                    ends.setdefault(listing[listing.rindex(b"\n", 0, at + 1) + 1 : stop], set()).add(end)
                    at = listing.find(end, stop)
            self._having.update((word, frozenset(found)) for word, found in ends.items())
            self._plain |= new - ends.keys()
        return frozenset().union(*(self._having[word] for word in rest if word in self._having))


_current = Vocabulary()


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
        self._words: list[bytes] = []
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

    def referred(other: re.Match[str]) -> str:
        return "|".join(list_section(other[1])) if other[1] in _sections() else pattern_text(other[1])

    return _NAMED.sub(referred, _patterns()[name])


class _Shapes:
    """The patterns of `grammar.txt` by their names, each compiled when it is first used."""

    def __getattr__(self, name: str) -> re.Pattern[str]:
        vars(self)[name] = pattern = re.compile(pattern_text(name))
        return pattern


SHAPES = _Shapes()
