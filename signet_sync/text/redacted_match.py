"""Compares two texts while ignoring what the sanitizer redacted in them.

A text written under older rules and one sanitized today come from the same words, and differ where the rules do: in the
names of marks, in how far a mark reaches, and in what only one of them recognizes as a secret.
"""

from __future__ import annotations

from collections.abc import Sequence

from signet_sync.formats.lazy_pattern import late

_OPENING = "[REDACTED:"
MARK = late(r"\[REDACTED:[a-z0-9-]+\]")
_ANY = "\0"  # replaces a mark: no sanitized text contains it
# A secret of several lines (a private key) that became one mark had no more lines than this.
_MOST_LINES = 200


def is_marked(text: str) -> bool:
    """Returns whether something was redacted in a text."""
    return _OPENING in text


def alike(one: str, other: str) -> bool:
    """Returns whether two sanitized texts are the same but for what was redacted in either."""
    return one == other or begins(one, 0, other) == len(one) or begins(other, 0, one) == len(other)


def begins(whole: str, at: int, part: str) -> int:
    """Returns where `part` ends in `whole`, found at `at` but for what was redacted in either; else -1.

    `at` is the beginning of a line. Unless the text is identical, `part` ends at the end of a line.
    """
    if whole.startswith(part, at):
        return at + len(part)
    start, matched, end = at, 0, -1
    hiding = False  # whether the whole's last line ends with a mark, which may replace further lines of the part
    while matched <= len(part):
        line = _line(whole, start)
        wanted = _line(part, matched) or ""
        if line is not None and _is_same_line(line, wanted):
            hiding = line != wanted and _plain(line).endswith(_ANY)
            end = start + len(line)
            start, matched = end + 1, matched + len(wanted) + 1
            continue
        if not hiding:
            return -1
        further = part[matched:].split("\n", _MOST_LINES)
        again = next((n for n, each in enumerate(further) if line is not None and _is_same_line(line, each)), None)
        if again is None:
            return end if len(further) <= _MOST_LINES else -1
        matched += sum(len(each) + 1 for each in further[:again])
    return end


def _line(text: str, start: int) -> str | None:
    """Returns the line that begins there; None after the last one."""
    if start > len(text):
        return None
    stop = text.find("\n", start)
    return text[start : stop if stop >= 0 else len(text)]


def _plain(line: str) -> str:
    return MARK.sub(_ANY, line) if is_marked(line) else line


def _is_same_line(one: str, other: str) -> bool:
    if one == other:
        return True
    if not (is_marked(one) or is_marked(other)):
        return False
    one, other = _plain(one), _plain(other)
    return _covers(one, other) or _covers(other, one)


def _covers(marked: str, line: str) -> bool:
    """Returns whether a line is the marked one with other text in place of each mark."""
    pieces = marked.split(_ANY)
    return is_filled(pieces, line) if len(pieces) > 1 else marked == line


def is_filled(pieces: Sequence[str], text: str, *, least: int = 0) -> bool:
    """Returns whether a text consists of these pieces, two or more, with at least so many characters between them."""
    first, *middle, last = pieces
    at, end = len(first), len(text) - len(last)
    if not text.startswith(first) or not text.endswith(last):
        return False
    for piece in middle:
        # The earliest position: a later one leaves less space for the others.
        at = text.find(piece, at + least, max(end, 0))
        if at < 0:
            return False
        at += len(piece)
    return at + least <= end
