"""Finds secrets in encoded text: base64 and percent-encoding hide the marks that the other rules search for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.secrets.searched_text import SearchedText, SecretSpan
from signet_sync.text.secrets.values import decoded

Extent = Callable[[str], tuple[int, int] | None]

# One line, or lines of at least forty characters.
_BASE64 = late(
    r"[A-Za-z0-9/][A-Za-z0-9+/]{39,}(?:\n[ \t+>|]{0,8}[A-Za-z0-9+/]{40,})*"
    r"(?:\n[ \t+>|]{0,8}[A-Za-z0-9+/]{4,39}(?![A-Za-z0-9+/ ]))?={0,2}"
)
# Keys of Azure contain a mark of their service.
_AZURE = late(r"[A-Za-z0-9/+]{76}(?:\+ASt|ACDb|\+ARm)[A-Za-z0-9/+]{6}==")
_NOT_TEXT = late(rb"[^\t\n\r -~]")
_BETWEEN_LINES = late(r"[^A-Za-z0-9+/]")
_PERCENT_RUN = late(r"[A-Za-z0-9._~+*!%-]+")
_PERCENT = late("%[0-9A-Fa-f]{2}")
_PERCENT_OR_PLUS = late("%[0-9A-Fa-f]{2}|[+]")
# Marks that other rules search for, escaped: `:` `=` `@` `+` `/` `"`.
_ESCAPED_MARK = late(r"%(?:3[ad]|40|2[bf2])")
_LEAST = 40


def find_base64(searched: SearchedText, extent: Extent) -> Iterator[SecretSpan]:
    """Yields whole runs of base64 whose text contains a secret."""
    done = 0
    for start, end in searched.encoded_runs(_LEAST):
        # Base64 of text has capitals: a hash has none.
        if start < done or searched.bytes[start:end].islower():
            continue
        match = _BASE64.match(searched.text, start) or _BASE64.match(searched.text, start + 1)
        if match is None:
            continue
        if len(match[0]) > 80 and _AZURE.fullmatch(match[0]):
            done = match.end()
            yield SecretSpan(*match.span(), "azure-marked")
            continue
        text = decoded_text(match[0])
        if text and extent(text):
            done = match.end()
            yield SecretSpan(*match.span(), "base64")


def decoded_text(run: str) -> str:
    """Decodes a base64 run (perhaps of several lines) to its text, or to "" if it holds none.

    It holds text if it begins with 15 characters of ASCII. The `n` of an escaped newline may be glued to the front, so
    that the run proper begins up to three characters late.
    """
    for delay in range(4):
        head = decoded(run[delay : delay + 20])
        if head and not _NOT_TEXT.search(head):
            return decoded(_BETWEEN_LINES.sub("", run[delay:])).decode("utf-8", "replace")
    return ""


def find_percent(searched: SearchedText, extent: Extent) -> Iterator[SecretSpan]:
    """Yields percent-encoded text from the first secret to the end of the last one, at its position in the text."""
    text, done = searched.text, 0
    for mark in searched.matches(_ESCAPED_MARK, ("%",)):
        place = mark.start()
        if place < done:
            continue
        start = _begin(text, place, done)
        match = _PERCENT_RUN.match(text, start)
        if match is None or len(match[0]) < 12:
            continue
        done = match.end()
        found = _percent_encoded(match[0], extent)
        if found:
            yield SecretSpan(start + found[0], start + found[1], "percent-encoded")


_ALLOWED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+*!%-"


def _begin(text: str, place: int, done: int) -> int:
    """Returns where the run around a position begins; a very long one is read in parts."""
    before = text[max(done, place - 4096) : place]
    return place - len(before) + len(before.rstrip(_ALLOWED))


def _percent_encoded(text: str, extent: Extent) -> tuple[int, int] | None:
    # One character for each escape, so that positions can be mapped; bytes beyond ASCII are in no secret.
    plain = _PERCENT_OR_PLUS.sub(lambda escape: " " if escape[0] == "+" else chr(int(escape[0][1:], 16)), text)
    # A run is part of a line: its first name is not at the beginning of one.
    secret = extent("]" + plain)
    if secret is None:
        return None
    escapes = [escape.start() - 2 * number for number, escape in enumerate(_PERCENT.finditer(text))]
    start, end = (place + 2 * bisect_left(escapes, place) for place in (secret[0] - 1, secret[1] - 1))
    return start, end


# ── text within strings ──

_ESCAPE_MARK = late(r"\\(?:[\"n]|u[0-9a-f]{4})")
_ESCAPE = late(r"\\(?:[nrt\"'\\/]|u[0-9a-fA-F]{4})")
_UNESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_BETWEEN = "\n\n\n"


def find_escaped(searched: SearchedText, spans: Callable[[str], Iterator[SecretSpan]]) -> Iterator[SecretSpan]:
    r"""Yields secrets in lines with strings that contain text of their own, such as JSON in JSON: `\n`, `\"`, `\u0041`.

    Each level removed halves the number of backslashes, so that nested levels end soon.
    """
    low, end = searched.low, 0
    pieces: list[str] = []
    # Where each piece begins in the text without escapes, where in the text, and its length there.
    inner, outer, widths, at, shorter = [0], [0], [0], 0, False
    for mark in searched.matches(_ESCAPE_MARK, ("\\",)):
        if mark.start() < end:
            continue
        start = low.rfind("\n", end, mark.start()) + 1 or end
        end = low.find("\n", mark.start())
        end = len(low) if end < 0 else end
        for piece, place in _pieces(searched.text, start, end):
            inner.append(at)
            outer.append(place)
            widths.append(len(piece))
            plain = _plain(piece)
            pieces.append(plain)
            at += len(plain)
            shorter = shorter or plain is not piece
        pieces.append(_BETWEEN)
        at += len(_BETWEEN)
    if not shorter:
        return
    for found in spans("".join(pieces)):
        first, last = bisect_right(inner, found.start) - 1, bisect_right(inner, found.end - 1) - 1
        begin = outer[first] + min(found.start - inner[first], widths[first])
        stop = outer[last] + (
            widths[last]
            if last + 1 < len(inner) and inner[last + 1] - inner[last] == 1 and widths[last] > 1
            else min(found.end - inner[last], widths[last])
        )
        if begin < stop:
            yield SecretSpan(begin, stop, found.rule)


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[str, int]]:
    """Yields the escapes of a line and the text between them, with their positions."""
    for escape in _ESCAPE.finditer(text, start, end):
        if escape.start() > start:
            yield text[start : escape.start()], start
        yield escape[0], escape.start()
        start = escape.end()
    if start < end:
        yield text[start:end], start


def _plain(piece: str) -> str:
    if piece[0] != "\\" or not _ESCAPE.fullmatch(piece):
        return piece
    return chr(int(piece[2:], 16)) if len(piece) == 6 else _UNESCAPED.get(piece[1], piece[1])
