"""Finds secrets in encoded text: base64, percent-encoding, escapes and colours hide the marks of the other rules."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate

from signet_sync.formats.body import JOINERS, SELECTORS, UNSEEN
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.secrets.names import decode_base64
from signet_sync.text.secrets.searched_text import SEQUENCES, SHAPES, SearchedText, SecretSpan

Extent = Callable[[str], tuple[int, int] | None]

_NOT_TEXT = late(rb"[^\t\n\r -~]")
_LEAST = 40


def find_base64(searched: SearchedText, extent: Extent) -> Iterator[SecretSpan]:
    """Yields whole runs of base64 whose text contains a secret."""
    done = 0
    for start, end in searched.encoded_runs(_LEAST):
        # Base64 of text has capitals: a hash has none.
        if start < done or searched.bytes[start:end].islower():
            continue
        match = SHAPES.encoded_lines.match(searched.text, start) or SHAPES.encoded_lines.match(searched.text, start + 1)
        if match is None:
            continue
        if len(match[0]) > 80 and SHAPES.azure_key.fullmatch(match[0]):
            done = match.end()
            yield SecretSpan(*match.span(), "azure-marked")
            continue
        text = decode_run(match[0])
        if text and extent(text):
            done = match.end()
            yield SecretSpan(*match.span(), "base64")


def decode_run(run: str) -> str:
    """Decodes a base64 run (perhaps of several lines) to its text, or to "" if it holds none.

    It holds text if it begins with 15 characters of ASCII. The `n` of an escaped newline may be glued to the front, so
    that the run proper begins up to three characters late.
    """
    for delay in range(4):
        head = decode_base64(run[delay : delay + 20])
        if head and not _NOT_TEXT.search(head):
            return decode_base64(SHAPES.between_lines.sub("", run[delay:])).decode("utf-8", "replace")
    return ""


def find_percent(searched: SearchedText, spans: Callable[[str], Iterator[SecretSpan]]) -> Iterator[SecretSpan]:
    """Yields percent-encoded text from the first secret to the end of the last one, at its position in the text.

    All runs are decoded to one text, which the rules read once.
    """
    text, done = searched.text, 0
    runs: list[tuple[int, str]] = []
    places: list[int] = []
    pieces: list[str] = []
    at = 0
    for mark in searched.matches(SHAPES.escaped_mark, ("%",)):
        place = mark.start()
        if place < done:
            continue
        start = _begin(text, place, done)
        match = SHAPES.percent_run.match(text, start)
        if match is None or len(match[0]) < 12:
            continue
        done = match.end()
        # A run is part of a line: its first name is not at the beginning of one.
        pieces.append("]" + _percent_decoded(match[0]) + _BETWEEN)
        runs.append((start, match[0]))
        places.append(at)
        at += len(pieces[-1])
    extents: dict[int, tuple[int, int]] = {}
    for found in spans("".join(pieces)) if pieces else ():
        run, other = (bisect_right(places, place) - 1 for place in (found.start, found.end - 1))
        if run < other:  # a crowd
            yield SecretSpan(runs[run][0], runs[other][0] + len(runs[other][1]), found.rule)
            continue
        start, end = (min(place - places[run] - 1, len(pieces[run]) - 4) for place in found[:2])
        first, last = extents.get(run, (start, end))
        extents[run] = min(max(start, 0), first), max(end, last)
    for run, (first, last) in extents.items():
        start, encoded = runs[run]
        escapes = [escape.start() - 2 * number for number, escape in enumerate(SHAPES.percent.finditer(encoded))]
        first, last = (place + 2 * bisect_left(escapes, place) for place in (first, last))
        yield SecretSpan(start + first, start + last, "percent-encoded")


_ALLOWED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+*!%-"


def _begin(text: str, place: int, done: int) -> int:
    """Returns where the run around a position begins; a very long one is read in parts."""
    before = text[max(done, place - 4096) : place]
    return place - len(before) + len(before.rstrip(_ALLOWED))


def _percent_decoded(text: str) -> str:
    """Decodes to one character for each escape, so that positions can be mapped; no secret has bytes beyond ASCII."""
    return SHAPES.percent_or_plus.sub(lambda escape: " " if escape[0] == "+" else chr(int(escape[0][1:], 16)), text)


# ── text within strings, under what a terminal and a keyboard add ──

# In lower case: what leads to a line that has anything beneath.
_LED_TO = {"\\": late(r"\\(?:[\"n]|u[0-9a-f]{4}|x1b|0?33\[|e\[)"), "^[": late(r"\^\[[\[\]]")}
_NOT_SEEN = rf"[{UNSEEN}{JOINERS}{SELECTORS}]|(?<=[!-~])\xa0(?=[!-~])|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
_HIDDEN = late(f"{SEQUENCES}|{_NOT_SEEN}")
_UNESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_BETWEEN = "\n\n\n"
WIDTHS = frozenset((80, 100, 120))


def find_escaped(searched: SearchedText, spans: Callable[[str], Iterator[SecretSpan]]) -> Iterator[SecretSpan]:
    r"""Yields secrets in lines with escapes, such as JSON in JSON: `\n`, `\"`, `\u0041`, a colour that is spelt out.

    Each level removed halves the number of backslashes, so that nested levels end soon.
    """
    text, low = searched.given, searched.low
    lines = sorted(
        {line for mark, leads in _LED_TO.items() if searched.holds(mark) for line in _lines_with(leads, low)}
    )
    return _View(text, SHAPES.escaped, lines).found(spans)


def find_hidden(searched: SearchedText, spans: Callable[[str], Iterator[SecretSpan]]) -> Iterator[SecretSpan]:
    """Yields secrets in lines with colours, other control characters, and what nobody sees."""
    return _View(searched.given, _HIDDEN, list(_lines_with(_HIDDEN, searched.given))).found(spans)


def _lines_with(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    """Yields the lines in which a pattern is found: where each begins and ends."""
    end = 0
    while mark := pattern.search(text, end):
        start = text.rfind("\n", end, mark.start()) + 1 or end
        end = text.find("\n", mark.start())
        end = len(text) if end < 0 else end
        yield start, end


def find_wrapped(searched: SearchedText, spans: Callable[[str], Iterator[SecretSpan]]) -> Iterator[SecretSpan]:
    """Yields secrets that the end of a line cuts because the line was as wide as a terminal."""
    text, stretches = searched.given, [(0, 0)]
    starts = accumulate((width + 1 for width in searched.line_widths), initial=0)
    wide = (start for start, width in zip(starts, searched.line_widths, strict=False) if width in WIDTHS)
    for line in filter(None, (SHAPES.wrapped_line.match(text, start) for start in wide)):
        start, end = stretches[-1]
        following = text.find("\n", line.end())
        following = len(text) if following < 0 else following
        if line.start() <= end and end:
            stretches[-1] = start, following
        else:
            stretches.append((line.start(), following))
    for found in _View(text, SHAPES.line_end, stretches[1:]).found(spans):
        first, _, rest = text[found.start : found.end].partition("\n")
        # After a whole secret at the end of a line that happens to be as wide, a word begins.
        if rest and not (rest.islower() and rest.isalpha() and len(first) > len(rest)):
            yield found


class _View:
    """Stretches of a text without what hides it; where each position beneath is in the text is asked for few."""

    def __init__(self, text: str, hiding: re.Pattern[str], stretches: list[tuple[int, int]]) -> None:
        self.text, self.hiding = text, hiding
        self.stretches = [(start, end) for start, end in stretches if start < end]
        self.begins: list[int] = []
        self.tables: dict[int, tuple[list[int], list[int], list[int]]] = {}

    def found(self, spans: Callable[[str], Iterator[SecretSpan]]) -> Iterator[SecretSpan]:
        """Yields what is found beneath, at its position in the text."""
        plain = _plain if self.hiding is SHAPES.escaped else ""
        pieces = [self.hiding.subn(plain, self.text[start:end]) for start, end in self.stretches]
        if not any(count for _, count in pieces):
            return
        self.begins = list(accumulate((len(piece) + len(_BETWEEN) for piece, _ in pieces), initial=0))
        for found in spans("".join(piece + _BETWEEN for piece, _ in pieces)):
            begin, _ = self._outside(found.start, found.start)
            _, stop = self._outside(found.end - 1, found.end)
            if begin < stop:
                yield SecretSpan(begin, stop, found.rule)

    def _outside(self, place: int, end: int) -> tuple[int, int]:
        """Returns where a position beneath is in the text, and where what ends there ends: never within an escape."""
        inner, outer, widths = self._table(bisect_right(self.begins, place) - 1)
        at = bisect_right(inner, place) - 1
        is_escape = inner[at + 1] - inner[at] == 1 and widths[at] > 1
        return (
            outer[at] + min(place - inner[at], widths[at]),
            outer[at] + (widths[at] if is_escape else min(end - inner[at], widths[at])),
        )

    def _table(self, number: int) -> tuple[list[int], list[int], list[int]]:
        """Returns the pieces of a stretch: where each begins beneath and in the text, and its length there."""
        if number not in self.tables:
            start, end = self.stretches[number]
            at, inner, outer, widths = start, [self.begins[number]], [], []
            for found in self.hiding.finditer(self.text, start, end):
                if found.start() > at:
                    outer.append(at)
                    widths.append(found.start() - at)
                    inner.append(inner[-1] + widths[-1])
                outer.append(found.start())
                widths.append(found.end() - found.start())
                inner.append(inner[-1] + (len(_plain(found)) if self.hiding is SHAPES.escaped else 0))
                at = found.end()
            if at < end:
                outer.append(at)
                widths.append(end - at)
            else:
                inner.pop()
            inner.append(self.begins[number + 1])
            self.tables[number] = inner, outer, widths
        return self.tables[number]


def _plain(escape: re.Match[str]) -> str:
    """Returns what an escape stands for."""
    piece = escape[0]
    if piece[0] == "^":
        return "\x1b"
    if len(piece) == 6 and piece[1] == "u":
        return chr(int(piece[2:], 16))
    return "\x1b" if len(piece) > 2 or piece == "\\e" else _UNESCAPED.get(piece[1], piece[1])
