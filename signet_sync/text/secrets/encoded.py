"""Finds secrets in encoded text: base64, percent-encoding, escapes and colours hide the marks of the other rules."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache
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
    """Yields secrets in percent-encoded text."""
    text, runs = searched.text, [(0, 0)]
    for mark in searched.matches(SHAPES.escaped_mark, ("%",)):
        place, done = mark.start(), runs[-1][1]
        if place >= done:
            # A very long run is read in parts.
            before = text[max(done, place - 4096) : place]
            match = SHAPES.percent_run.match(text, place - len(before) + len(before.rstrip(_ALLOWED)))
            runs += [match.span()] if match is not None and len(match[0]) >= 12 else []
    # A run is part of a line: its first name is not at the beginning of one.
    found = _find_beneath(text, SHAPES.percent_or_plus, runs[1:], spans, _percent_decoded, before="]")
    return (one._replace(rule="percent-encoded") for one in found)


_ALLOWED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+*!%-"


def _percent_decoded(escape: re.Match[str]) -> str:
    """Decodes to one character for each escape; no secret has bytes beyond ASCII."""
    return " " if escape[0] == "+" else chr(int(escape[0][1:], 16))


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
    return _find_beneath(text, SHAPES.escaped, lines, spans, _plain)


def find_hidden(searched: SearchedText, spans: Callable[[str], Iterator[SecretSpan]]) -> Iterator[SecretSpan]:
    """Yields secrets in lines with colours, other control characters, and what nobody sees."""
    return _find_beneath(searched.given, _HIDDEN, _lines_with(_HIDDEN, searched.given), spans)


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
    for found in _find_beneath(text, SHAPES.line_end, stretches[1:], spans):
        first, _, rest = text[found.start : found.end].partition("\n")
        # After a whole secret at the end of a line that happens to be as wide, a word begins.
        if rest and not (rest.islower() and rest.isalpha() and len(first) > len(rest)):
            yield found


def _find_beneath(
    text: str,
    hiding: re.Pattern[str],
    stretches: Iterable[tuple[int, int]],
    spans: Callable[[str], Iterator[SecretSpan]],
    plain: Callable[[re.Match[str]], str] = lambda hidden: "",
    before: str = "",
) -> Iterator[SecretSpan]:
    """Yields what is found in stretches of a text without what hides it, at its position in the text."""
    pieces = [(stretch, *hiding.subn(plain, text[slice(*stretch)])) for stretch in stretches]
    if not any(count for _, _, count in pieces):
        return
    shown = [(stretch, f"{before}{piece}{_BETWEEN}") for stretch, piece, _ in pieces if piece]
    begins = list(accumulate((len(piece) for _, piece in shown), initial=len(before)))

    @cache
    def places(number: int) -> tuple[array[int], array[int]]:
        """Where each character beneath begins and ends in the text; an escape is one character."""
        (at, end), firsts, lasts = shown[number][0], array("q"), array("q")
        for hidden in hiding.finditer(text, at, end):
            firsts.extend(range(at, hidden.start()))
            lasts.extend(range(at + 1, hidden.start() + 1))
            at = hidden.end()
            if plain(hidden):
                firsts.append(hidden.start())
                lasts.append(at)
        firsts.extend(range(at, end))
        lasts.extend(range(at + 1, end + 1))
        return firsts, lasts

    for found in spans("".join(piece for _, piece in shown)):
        bounds = []
        for side, place in enumerate((max(found.start, len(before)), found.end - 1)):
            number = bisect_right(begins, place) - 1
            outer = places(number)[side]
            bounds.append(outer[min(place - begins[number], len(outer) - 1)])
        if bounds[0] < bounds[1]:
            yield SecretSpan(bounds[0], bounds[1], found.rule)


def _plain(escape: re.Match[str]) -> str:
    """Returns what an escape stands for."""
    piece = escape[0]
    if piece[0] == "^":
        return "\x1b"
    if len(piece) == 6 and piece[1] == "u":
        return chr(int(piece[2:], 16))
    return "\x1b" if len(piece) > 2 or piece == "\\e" else _UNESCAPED.get(piece[1], piece[1])
