"""Tells by the words of a text which literals it can hold: most words were seen before, and need no second look."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import islice
from typing import Generic, TypeVar

_Thing = TypeVar("_Thing")

# Everything but the letters of Latin-1 is a gap between words.
_LETTERS = bytes(code if chr(code).isalpha() else ord(" ") for code in range(256))
_NO_SIGNS = bytes(code for code in range(256) if chr(code).isalpha() or chr(code).isspace())
# Of every literal that was asked for.
_ENDS: dict[bytes, None] = {}
_MOST = 30_000  # words: some megabytes


def words_of(low: str) -> frozenset[bytes]:
    """Returns the words of a text in lower case."""
    return frozenset(low.encode("latin-1", "replace").translate(_LETTERS).split())


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


def later_ends(words: frozenset[bytes], known: int) -> set[bytes]:
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
    def current(cls) -> Vocabulary:
        """Returns the one that knows every literal; a new one if it has grown large."""
        global _current
        if _current.known < len(_ENDS) or len(_current._plain) > _MOST:
            _current = cls()
        return _current

    def ends_in(self, words: frozenset[bytes]) -> frozenset[bytes]:
        """Returns the ends of literals in some words."""
        rest = words - self._plain
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
