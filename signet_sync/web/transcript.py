"""Splits a long text into parts at turns, and parses a part into turns. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from signet_sync.text import chunking
from signet_sync.text.chunking import ChunkSpan
from signet_sync.text.digest.lines import Speaker, is_ours, turn_of
from signet_sync.web.markdown import Prose, open_fence

PART = 8_000  # tokens: about ten screens

_WORD = re.compile(r"[^\W\d_]+")
_DIVIDER = "***\n\n"


class TurnView(NamedTuple):
    """What one speaker said; `goes_on` if it began in an earlier part. `at` is in microseconds.

    `line` is that of its heading, 0 if it has none.
    """

    speaker: Speaker
    label: str
    at: int | None
    line: int
    goes_on: bool
    prose: Prose


@dataclass(frozen=True)
class Script:
    """A text that was split: `first` is the number of its first line, `begun` are the starts of turns."""

    text: str
    first: int
    begun: tuple[chunking.TurnStart, ...]
    parts: tuple[ChunkSpan, ...]
    ours: bool

    def line_at(self, place: int) -> int:
        """Returns the line that contains a position."""
        return self.first + self.text.count("\n", 0, place)

    def part_of(self, line: int) -> int:
        """Returns which part (from 0) contains a line; the last one if the text ends before it."""
        place = 0
        for _ in range(line - self.first):
            following = self.text.find("\n", place) + 1
            if not following:
                break
            place = following
        return max(bisect_right(self.parts, place, key=lambda piece: piece.start) - 1, 0)


# A reader usually requests the next part of the same text.
@lru_cache(maxsize=1)
def cut(text: str, first: int = 1, *, spoken: bool) -> Script:
    """Splits a text into parts; `spoken`: it is a conversation."""
    begun = tuple(chunking.turns(text)) if spoken else ()
    return Script(text, first, begun, tuple(chunking.pieces(text, PART, begun)), spoken and is_ours(text))


def read(script: Script, part: int) -> list[TurnView]:
    """Returns the turns of a part, counted from 0; none if there is no such part."""
    if not 0 <= part < len(script.parts):
        return []
    return [turn for turn in _turns(script, script.parts[part]) if turn.prose or turn.label]


def _turns(script: Script, piece: ChunkSpan) -> Iterator[TurnView]:
    next_turn = bisect_right(script.begun, piece.start, key=lambda turn: turn.start)
    starts = [turn for turn in script.begun[max(next_turn - 1, 0) :] if turn.start < piece.end]
    line = script.line_at(piece.start)
    if not starts or starts[0].start > piece.start:
        end = starts[0].start if starts else piece.end
        yield TurnView("other", "", None, 0, False, Prose(script.text[piece.start : end], line))
        line += script.text.count("\n", piece.start, end)
    for place, turn in enumerate(starts):
        end = min(starts[place + 1].start if place + 1 < len(starts) else piece.end, piece.end)
        if end <= piece.start:
            continue
        begin = max(turn.start, piece.start)
        yield _turn(script, turn, begin, end, line)
        line += script.text.count("\n", begin, end)


def _turn(script: Script, turn: chunking.TurnStart, begin: int, end: int, line: int) -> TurnView:
    """Returns a turn between two positions, without its heading."""
    head = turn.start + len(_DIVIDER) * script.text.startswith(_DIVIDER, turn.start)
    head_end = script.text.find("\n", head, head + 1_000)
    opening = script.text[head : head_end if head_end >= 0 else min(end, head + 1_000)]
    heading = turn_of(opening, ours=script.ours)
    if heading is None:
        return TurnView("other", "", turn.at, 0, begin > turn.start, Prose(script.text[begin:end], line))
    speaker, said = heading
    label = speaker.capitalize() if speaker != "other" else _role(opening)
    if begin > turn.start:
        fence = open_fence(script.text[turn.start : begin].split("\n"))
        return TurnView(speaker, label, turn.at, 0, True, Prose(script.text[begin:end], line, fence))
    # Words may follow the label on the same line.
    body = head + len(opening) - len(said)
    inner = line + script.text.count("\n", begin, body)
    return TurnView(speaker, label, turn.at, 0 if said else inner, False, Prose(script.text[body:end], inner))


def _role(opening: str) -> str:
    found = _WORD.search(opening)
    return found[0].capitalize() if found else ""
