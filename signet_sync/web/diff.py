"""Computes how two texts differ, line by line, as rows for a person; bounded, however long the texts are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Literal, NamedTuple

Kind = Literal["same", "gone", "new", "skipped", "more"]

CONTEXT = 3  # lines around a change
COMPARED = 1_000  # lines on either side that are compared; with more, the whole of one side replaces that of the other
ROWS = 600
BLOCK = 200  # removed lines, and added lines, shown in one place
WIDE = 1_200  # characters of a line that are shown
_AROUND = 120  # characters of a long line before and after its change
_INTRALINE = 20_000
_WORD = 40


class LinePiece(NamedTuple):
    """A part of a line; `changed` if the line of the other side differs here."""

    text: str
    changed: bool


class DiffRow(NamedTuple):
    """A line with its numbers (from 1) in both texts.

    `lines` is how many lines a row represents: `skipped` ones are equal, `more` ones changed like those above.
    """

    kind: Kind
    before: int | None
    after: int | None
    pieces: tuple[LinePiece, ...]
    lines: int = 0


class Differing(NamedTuple):
    """Rows from top to bottom, the total of removed and added lines; `whole`: every change is shown."""

    rows: list[DiffRow]
    gone: int
    new: int
    whole: bool


def differing(before: str, after: str) -> Differing:
    """Returns what changed from one text to another; equal texts have no rows."""
    old, new = before.split("\n"), after.split("\n")
    blocks = [block for block in _blocks(old, new) if block[0] != "equal"]
    gone = sum(block[2] - block[1] for block in blocks)
    came = sum(block[4] - block[3] for block in blocks)
    rows = [_narrowed(row) for row in islice(_rows(old, new, blocks), ROWS + 1)]
    whole = len(rows) <= ROWS and all(row.kind != "more" for row in rows)
    return Differing(rows[:ROWS], gone, came, whole)


Opcode = tuple[str, int, int, int, int]


def _blocks(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """Returns difflib's opcodes; equal lines at both ends are left out first, since that is cheap."""
    top = _alike(old, new)
    bottom = _alike(old[top:][::-1], new[top:][::-1])
    left, right = old[top : len(old) - bottom], new[top : len(new) - bottom]
    if not left and not right:
        return []
    if max(len(left), len(right)) > COMPARED:
        return [("replace", top, top + len(left), top, top + len(right))]
    matched = SequenceMatcher(None, left, right).get_opcodes()
    return [(tag, top + a, top + b, top + c, top + d) for tag, a, b, c, d in matched]


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Counts the equal lines, or characters of a line, at the beginning."""
    shorter = min(len(one), len(other))
    return next((at for at in range(shorter) if one[at] != other[at]), shorter)


def _rows(old: Sequence[str], new: Sequence[str], blocks: Sequence[Opcode]) -> Iterator[DiffRow]:
    shown = 0  # lines of the old text covered so far
    for place, (_, start, end, fresh, fresh_end) in enumerate(blocks):
        first = max(shown, start - CONTEXT)
        if first > shown:
            yield DiffRow("skipped", None, None, (), first - shown)
        for line in range(first, start):
            yield DiffRow("same", line + 1, line + 1 + fresh - start, (LinePiece(old[line], False),))
        yield from _changed(old, new, start, end, fresh, fresh_end)
        following = blocks[place + 1][1] if place + 1 < len(blocks) else len(old)
        shown = min(end + CONTEXT, following)
        for line in range(end, shown):
            yield DiffRow("same", line + 1, line + 1 + fresh_end - end, (LinePiece(old[line], False),))
    if blocks and shown < len(old):
        yield DiffRow("skipped", None, None, (), len(old) - shown)


def _changed(
    old: Sequence[str], new: Sequence[str], start: int, end: int, fresh: int, fresh_end: int
) -> Iterator[DiffRow]:
    """Yields removed lines, then added ones; lines at the same position are compared with each other."""
    went, came = old[start : min(end, start + BLOCK)], new[fresh : min(fresh_end, fresh + BLOCK)]
    marked = [_intraline(*pair) for pair in zip(went, came, strict=False)]
    for at, line in enumerate(went):
        pieces = marked[at][0] if at < len(marked) else (LinePiece(line, False),)
        yield DiffRow("gone", start + at + 1, None, pieces)
    if end - start > len(went):
        yield DiffRow("more", None, None, (), end - start - len(went))
    for at, line in enumerate(came):
        pieces = marked[at][1] if at < len(marked) else (LinePiece(line, False),)
        yield DiffRow("new", None, fresh + at + 1, pieces)
    if fresh_end - fresh > len(came):
        yield DiffRow("more", None, None, (), fresh_end - fresh - len(came))


def _intraline(went: str, came: str) -> tuple[tuple[LinePiece, ...], tuple[LinePiece, ...]]:
    """Returns both lines with differences marked, if most of them is equal; words are not split."""
    plain = (LinePiece(went, False),), (LinePiece(came, False),)
    if max(len(went), len(came)) > _INTRALINE:
        return plain
    head = _alike(went, came)
    tail = _alike(went[head:][::-1], came[head:][::-1])
    head = _between_words(went, came, head)
    tail = _between_words(went[::-1], came[::-1], tail)
    if head + tail < min(len(went), len(came)) / 3:
        return plain
    return _marked(went, head, tail), _marked(came, head, tail)


def _between_words(went: str, came: str, alike: int) -> int:
    """Shortens an equal beginning to the last gap between words, unless the word is very long."""
    inside = any(line[alike : alike + 1].isalnum() for line in (went, came))
    found = alike
    while inside and found and went[found - 1].isalnum():
        found -= 1
    return found if alike - found <= _WORD else alike


def _marked(line: str, head: int, tail: int) -> tuple[LinePiece, ...]:
    end = len(line) - tail
    pieces = LinePiece(line[:head], False), LinePiece(line[head:end], True), LinePiece(line[end:], False)
    return tuple(piece for piece in pieces if piece.text)


def _narrowed(row: DiffRow) -> DiffRow:
    """Shortens a long line to its change and a little around it, or to its beginning."""
    if sum(len(piece.text) for piece in row.pieces) <= WIDE:
        return row
    marked = any(piece.changed for piece in row.pieces)
    pieces = []
    for place, (text, changed) in enumerate(row.pieces):
        if changed or not marked:
            pieces.append(LinePiece(_cut(text, WIDE - 3 * _AROUND), changed))
        elif place == 0:
            pieces.append(LinePiece(text if len(text) <= _AROUND else f"…{text[-_AROUND:]}", False))
        else:
            pieces.append(LinePiece(_cut(text, _AROUND), False))
    return row._replace(pieces=tuple(pieces))


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"
