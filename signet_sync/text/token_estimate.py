"""Estimates how many tokens a text costs a model, and cuts texts to so many.

The estimate is of cl100k's count and needs none of its tables, so that every machine renders the same bytes. Each
character is reduced to its class, one byte, and patterns of classes are then counted by `bytes.count`: cl100k, too,
first cuts a text by such classes, and only then merges. The costs were fitted to cl100k's own counts of rendered pages
(2 to 11 % over), of random ids in lower case, Markdown and JSON (7 % under to 17 % over), of code (up to 30 % over) and
of prose in thirty languages (a quarter under at worst, in long German words; 45 % over in Chinese). It is far under
only on long runs of random letters, and a quarter under on random upper case and base64.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache

_CLASSES = (
    # The class, and the first and last byte of UTF-8 that belong to it; later rows win. Continuation bytes are dropped,
    # so a character is its first byte. No class but `a` and `A` may be a letter: see `estimate_tokens`.
    (b"1", 0x80, 0xFF),  # Latin with accents, Greek, Arabic: about a token per character
    (b"!", 0x00, 0x7F),
    (b" ", 0x20, 0x20),
    (b"\n", 0x0A, 0x0A),
    (b"0", 0x30, 0x39),
    (b"A", 0x41, 0x5A),
    (b"a", 0x61, 0x7A),
    (b"/", 0xD0, 0xD3),  # Cyrillic: about half a token per character
    (b"2", 0xD4, 0xD6),  # Armenian, the points of Hebrew
    (b"#", 0xD7, 0xD7),  # Hebrew
    (b"2", 0xDC, 0xDF),
    (b"#", 0xE0, 0xE0),  # Indic scripts, Thai
    (b"2", 0xE1, 0xE2),
    (b"+", 0xE3, 0xE3),  # kana and the punctuation of CJK
    (b"#", 0xE4, 0xED),  # Han, Hangul
    (b"3", 0xEE, 0xEE),
    (b"2", 0xEF, 0xEF),
    (b"3", 0xF0, 0xFF),  # emoji and everything else beyond the first plane
)
_CONTINUATION = bytes(range(0x80, 0xC0))

_COSTS = (
    # A pattern of classes, and its cost wherever it occurs. Only the two of newlines alone may hold a newline: that
    # keeps `estimate_tokens` additive over lines.
    (b"\n", 1),
    (b"\n\n", -1),  # an empty line costs nothing of its own
    (b" 0", 1),  # a space merges into the word or sign after it, but never into a number
    (b"!", 1),
    (b"!!", -1),  # signs merge two by two
    (b"aA", 1),  # a hump, as in camelCase
    (b"a" * 9, 1),  # a word up to eight letters is one token more often than not ...
    (b"a" * 12, 1),  # ... but few real words are as long as these: ids, names, foreign words
    (b"a" * 16, 1),
    (b"A" * 5, 1),
    (b"0aaa", 1),  # letters between digits belong to an id, and merge two by two at best
    (b"0aaaaa", 1),
    (b"0aaaaaaa", 1),
    (b"aaaa0", 1),
    (b"0AAA", 1),
)
_COSTS_BEYOND_ASCII = (
    (b"1", 1),
    (b"/", 1),
    (b"//", -1),
    (b"2", 2),
    (b"3", 3),
    (b"+", 1),
    (b"++++", 1),
    (b"#", 2),
    (b"##", -1),
)
_CHEAP_LEADS = (
    # Two bytes of UTF-8 whose characters are in a class that costs two, but are common enough to cost one.
    b"\xe2\x80",  # dashes, typographic quotes, the ellipsis
    b"\xe1\xba",  # Vietnamese
    b"\xe1\xbb",
    b"\xef\xb8",  # the emoji selector
    b"\xef\xbc",  # full-width signs
    b"\xef\xbf",  # the replacement character
)


_CLASS_OF = bytearray(256)
for _class, _first, _last in _CLASSES:
    _CLASS_OF[_first : _last + 1] = _class * (_last + 1 - _first)


@lru_cache(2_048)  # a page's lines are counted again with every page
def estimate_tokens(text: str) -> int:
    """Estimates the tokens of cl100k in a text: 0 for the empty text, else at least 1; any text is accepted.

    Linear in the text's length. Lines may be estimated one by one and added up:
    `estimate(a + "\\n" + b) <= estimate(a) + estimate(b) + 1`, equal unless a line is blank; and adding a line never
    lowers it.
    """
    if not text:
        return 0
    raw = text.encode("utf-8", "surrogatepass")
    classes = raw.translate(_CLASS_OF, _CONTINUATION)
    # `title` makes the first letter of every run of letters upper and all others lower: words, counted in C.
    tokens = classes.title().count(b"A") + _numbers(classes)
    count = classes.count
    for pattern, cost in _COSTS:
        tokens += cost * count(pattern)
    if b"  " in classes:
        tokens += _gaps(classes)
    if not text.isascii():
        tokens += sum(cost * count(pattern) for pattern, cost in _COSTS_BEYOND_ASCII)
        tokens -= sum(map(raw.count, _CHEAP_LEADS))
    return max(1, tokens)


def _numbers(classes: bytes) -> int:
    """Counts the tokens of digits: three at a time, the rest of a run one more; in cl100k this is exact."""
    threes = classes.count(b"000")
    rest = classes.replace(b"000", b"")
    return threes + rest.count(b"0") - rest.count(b"00")


def _gaps(classes: bytes) -> int:
    """Counts the tokens of runs of two and more spaces: one or two for short runs, then about one per sixteen."""
    return classes.replace(b" " * 8, b"  ").replace(b"    ", b"  ").count(b"  ")


# No token has more characters than this: so many hold all that a budget can show.
CHARACTERS = 16


def cut(text: str, room: int, notice: str) -> str:
    """Returns the text if it fits into `room` tokens, else as many of its lines as fit, and a notice of the rest.

    A single line that is too long is cut; if there is no room for the notice, it is replaced by an ellipsis.
    """
    if len(text) <= room * CHARACTERS and estimate_tokens(text) <= room:
        return text
    left = room - estimate_tokens(notice) - 1
    kept = _lines(text, left) or _characters(text, left)
    return f"{kept}\n{notice}" if kept else _characters(text, room)


def _lines(text: str, room: int) -> str:
    end = place = 0
    while place < len(text):
        stop = text.find("\n", place)
        stop = len(text) if stop < 0 else stop
        room -= estimate_tokens(text[place:stop]) + 1
        if room < 0:
            break
        end, place = stop, stop + 1
    return text[:end]


def _characters(text: str, room: int) -> str:
    """Returns the beginning of a text and an ellipsis; empty if there is no room for both."""
    ends = range(max(min(len(text), room * CHARACTERS), 0) + 1)
    end = bisect_right(ends, room, key=lambda end: estimate_tokens(text[:end] + "…")) - 1
    return text[:end].rstrip() + "…" if end > 0 else ""


def keep_end(text: str, room: int, notice: str) -> str:
    """Returns the text if it fits into `room` tokens, else a notice and as many of its last lines as fit."""
    if estimate_tokens(text) <= room:
        return text
    backwards = _lines("\n".join(reversed(text.split("\n"))), room - estimate_tokens(notice) - 1)
    kept = "\n".join(reversed(backwards.split("\n"))).strip("\n")
    return f"{notice}\n{kept}" if kept else cut(text, room, notice)


def line_about(text: str, statement: str) -> int:
    """Returns the line, counted from 1, that holds most of a statement's words; the first of equal ones."""
    words = {word.strip(".,;:!?()[]'\"").casefold() for word in statement.split()}
    words = {word for word in words if len(word) > 3} or words
    lines = text.casefold().split("\n")
    return max(range(len(lines)), key=lambda place: (sum(word in lines[place] for word in words), -place)) + 1
