"""Cuts a transcript into chunks that cover all of it: between turns if these fit, else at paragraphs, lines, spaces."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple
from unicodedata import category

from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import parse_instant
from signet_sync.text.sentences import flatten
from signet_sync.text.token_estimate import rough_tokens

# Spaces cost next to nothing: a piece never has more characters than this for each token that it may have.
SPAN = 16
LABEL_LENGTH = 120

_STAMP = r"\d{4}-\d\d-\d\dT[\d:.]{1,20}Z"
_ROLE = r"(?i:user|human|assistant|ai|agent|model|system|claude|codex|gemini|用户|人类|助手|助理|系统)"
_FENCE = r"[ ]{0,3}(`{3,}|~{3,})([^\n]*)"
_OURS = rf"## (?:User|Assistant|Compaction) · {_STAMP}(?: · live)?(?=\n|\Z)"
_HEADING = rf"#{{1,6}}[ \t]+(?:\*\*)?{_ROLE}(?:\*\*)?[ \t]*(?:[·(|:：—-][^\n]*)?(?=\n|\Z)"
_LABEL = rf"(?:\*\*)?{_ROLE}(?:\*\*)?[ \t]*[:：](?:\*\*)?"
_THEIRS = rf"{_HEADING}|{_LABEL}"

# What may begin a line, first for the text's first line: searching for a newline is ten times as fast as for the
# beginning of a line, and the first character of most lines is enough.
_OUR_FIRST = late(rf"\A{_OURS}", re.ASCII)
_OUR_HEADING = late(rf"\n{_OURS}", re.ASCII)
_OPENING = 100  # characters within which a heading at the beginning of the text ends
_FENCE_LINE = late(_FENCE, re.ASCII)
_THEIR_MARKS = (
    late(rf"{_FENCE}|{_THEIRS}", re.ASCII),
    late(rf"\n(?=[ `~#*uhacmgsUHACMGS用人助系])(?:{_FENCE}|{_THEIRS})", re.ASCII),
)
_TIME = late(rf"·[ ]*({_STAMP})", re.ASCII)
_TURN = late(rf"(?:\*{{3}}\n\n)?{_OURS}|{_THEIRS}", re.ASCII)
_LEAD = late(r"[ \t]*(?:(?:#{1,6}|[-*+])[ \t]+|>[ \t]*)*")
_HIGH, _LOW = ("\ud800", "\udbff"), ("\udc00", "\udfff")

_LINES_SEEN, _LINE_SEEN = 60, 400
# A character with its marks is hardly ever longer; the rest of a longer one goes into the next piece.
_CLUSTER = 32
_HEADING_LENGTH = 120


class TurnStart(NamedTuple):
    """Where a turn begins, and when (microseconds since 1970 UTC) if its heading has a time."""

    start: int
    at: int | None


class ChunkSpan(NamedTuple):
    """Characters `start` to `end` of a text, and their tokens by `rough_tokens`."""

    start: int
    end: int
    tokens: int


def turns(text: str) -> Iterator[TurnStart]:
    """Yields where turns begin outside code fences, in order.

    If the text has headings like those of our own transcripts, only those count; else line starts such as `User:`,
    `**Assistant:**` or `### user`.
    """
    marks = _our_marks(text)
    if not any(name == "" for _, name, _ in marks):
        marks = _their_marks(text)
    fence = ""
    for start, ticks, rest in marks:
        if ticks:
            fence = _fence_after(fence, ticks, rest)
        elif not fence:
            time = _TIME.search(rest) if "·" in rest else None
            yield TurnStart(start, parse_instant(time[1]) if time else None)


class _LineMark(NamedTuple):
    """Something at the beginning of a line: a fence (`ticks`, and what follows them) or a turn's heading."""

    start: int
    ticks: str
    rest: str


def _our_marks(text: str) -> list[_LineMark]:
    """Finds our headings, and fences if there are such headings; searches for a fixed part of them, which is fast."""
    found = []
    for match in chain(_OUR_FIRST.finditer(text, 0, _OPENING), _OUR_HEADING.finditer(text)):
        start = match.start() + match[0].startswith("\n")
        # A compaction's divider belongs to its turn.
        divided = text.startswith("***\n\n", start - 5) and text[start - 6 : start - 5] in ("", "\n")
        found.append(_LineMark(start - 5 if divided and start >= 5 else start, "", match[0]))
    if not found:
        return []
    for sign in ("```", "~~~"):
        place = text.find(sign)
        while place >= 0:
            line = text.rfind("\n", max(place - 4, 0), place) + 1
            fence = _FENCE_LINE.match(text, line) if line or place < 4 else None
            if fence is not None:
                found.append(_LineMark(line, fence[1], fence[2]))
            place = text.find(sign, fence.end() if fence is not None else place + 1)
    return sorted(found)


def _their_marks(text: str) -> list[_LineMark]:
    first_line, line = _THEIR_MARKS
    opening = first_line.match(text)
    found = []
    for match in chain([opening] if opening else (), line.finditer(text)):
        ticks, info = match.groups()
        start = match.start() + (match is not opening)
        found.append(_LineMark(start, ticks or "", info if ticks else match[0]))
    return found


def _fence_after(fence: str, ticks: str, info: str) -> str:
    """Returns the fence that is open after a line of ticks, empty if none is."""
    if not fence:
        # Backticks after a fence of backticks make it code within a line.
        return "" if ticks[0] == "`" and "`" in info else ticks
    return "" if ticks.startswith(fence) and not info.strip() else fence


def pieces(text: str, limit: int, begun: Sequence[TurnStart] | None = None) -> Iterator[ChunkSpan]:
    """Yields pieces of at most `limit` tokens, in order, that cover the text without gap or overlap.

    Whole turns are joined while they fit, measured by the text's own characters per token. A turn that is too long is
    cut at its last empty line or heading that leaves the piece at least half full, else likewise at a line, else at a
    space, else between characters. A single character that costs more than `limit` is a piece of its own. Linear in the
    text's length. `begun` are its `turns`, if the caller has them already.
    """
    total = rough_tokens(text)
    if total <= limit and 0 < len(text) <= SPAN * limit:
        yield ChunkSpan(0, len(text), total)
        return
    stops = array("q", (turn.start for turn in (turns(text) if begun is None else begun) if turn.start))
    stops.append(len(text))
    room = min(limit * len(text) * 9 // (10 * max(total, 1)), SPAN * limit)
    start = following = 0
    while start < len(text):
        following, piece = _turns_that_fit(text, start, stops, following, room, limit)
        if piece.end == start:
            piece = _part_of_turn(text, start, stops[following], limit)
        yield piece
        start = piece.end


def times(begun: Iterable[TurnStart], cuts: Sequence[ChunkSpan]) -> Iterator[tuple[int, int] | None]:
    """Yields for each piece its first and last time by the headings of the text's turns, None while none is known.

    A piece that begins within a turn begins at that turn's time; a turn without a time has that of the one before.
    """
    coming = iter(begun)
    turn = next(coming, None)
    now: int | None = None
    for piece in cuts:
        first = last = None if turn is not None and turn.start == piece.start else now
        while turn is not None and turn.start < piece.end:
            now = now if turn.at is None else turn.at
            if now is not None:
                first = now if first is None else min(first, now)
                last = now if last is None else max(last, now)
            turn = next(coming, None)
        yield None if first is None or last is None else (first, last)


def first_words(piece: str) -> str:
    """Returns the first line of a piece that has words, flattened, without its speaker; empty if none has."""
    for line in piece.split("\n", _LINES_SEEN)[:_LINES_SEEN]:
        line = line[:_LINE_SEEN]
        turn = _TURN.match(line)
        words = _LEAD.sub("", line[turn.end() :] if turn else line, 1)
        if words.startswith(("```", "~~~")) or not any(map(str.isalnum, words)):
            continue
        return flatten(words, LABEL_LENGTH)
    return ""


# ── where to cut ──


def _turns_that_fit(
    text: str, start: int, stops: Sequence[int], following: int, room: int, limit: int
) -> tuple[int, ChunkSpan]:
    """Returns the whole turns from `start` to the last stop within `room` characters, or fewer; and the next stop."""
    upto = max(bisect_right(stops, start + room, following), following + 1)
    while upto > following:
        end = stops[upto - 1]
        tokens = rough_tokens(text[start:end]) if end - start <= SPAN * limit else limit + 1
        if tokens <= limit:
            return upto, ChunkSpan(start, end, tokens)
        upto = following + (upto - following) // 2
    return following, ChunkSpan(start, start, 0)


def _part_of_turn(text: str, start: int, stop: int, limit: int) -> ChunkSpan:
    """Returns the first part of a turn that is too long."""
    full = _characters_that_fit(text, start, min(stop, start + SPAN * limit), limit)
    half = start + (full - start) // 2
    end = _after_paragraph(text, start, half, full) or _after(text, "\n", half, full)
    if not end:
        end = _whole_character(text, start, _after(text, " ", half, full) or full)
    return ChunkSpan(start, end, rough_tokens(text[start:end]))


def _characters_that_fit(text: str, start: int, top: int, limit: int) -> int:
    """Finds an end that fits and nearly fills the limit: by density, and by bisection where that misses."""
    fits, over = start + 1, top + 1
    probe = min(start + 3 * limit, top)
    for attempt in range(64):
        tokens = rough_tokens(text[start:probe])
        if tokens > limit:
            over = min(over, probe)
        else:
            fits = max(fits, probe)
            if tokens >= limit * 7 // 8:
                break
        if over - fits <= 1:
            break
        probe = start + (probe - start) * limit * 15 // (16 * max(tokens, 1))
        if attempt > 3 or not fits < probe < over:
            probe = (fits + over) // 2
    return min(fits, top)


def _after(text: str, mark: str, low: int, high: int) -> int:
    """Returns where the last mark between two positions ends; 0 if there is none."""
    place = text.rfind(mark, low, high)
    return place + len(mark) if place >= 0 else 0


def _after_paragraph(text: str, start: int, low: int, high: int) -> int:
    """Returns the last beginning of a paragraph or heading between two positions; 0 if there is none."""
    end = _after(text, "\n\n", low, high)
    if not end:
        return text.rfind("\n#", low, high) + 1
    # A heading stays with the text below it, even if the piece gets a little shorter.
    line = text.rfind("\n", max(start, end - _HEADING_LENGTH), end - 2) + 1
    return line if line and text.startswith("#", line) else end


def _whole_character(text: str, start: int, end: int) -> int:
    """Moves the end back so that no character is separated from its marks (or CR from LF, or two surrogates)."""
    moved = end
    while moved > start + 1 and end - moved < _CLUSTER and _joined(text, moved):
        moved -= 1
    if _joined(text, moved):
        moved = end
    if _inseparable(text, moved):
        return moved - 1 if moved - 1 > start else moved + 1
    return moved


def _inseparable(text: str, place: int) -> bool:
    pair = text[place - 1 : place + 1]
    return pair == "\r\n" or (_HIGH[0] <= pair[:1] <= _HIGH[1] and _LOW[0] <= pair[1:] <= _LOW[1])


def _joined(text: str, place: int) -> bool:
    """Returns whether the characters before and after a position are shown as one."""
    before, after = text[place - 1 : place], text[place : place + 1]
    if not after or (before.isascii() and after.isascii()):
        return before + after == "\r\n"
    return (
        _inseparable(text, place)
        or category(after) in ("Mn", "Mc", "Me")
        or "\u200d" in (before, after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or ("\U0001f1e6" <= before <= "\U0001f1ff" and "\U0001f1e6" <= after <= "\U0001f1ff")
    )
