"""Splits a long text into parts at turns, and parses a part into turns. Pure."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from signet_sync.text import chunking
from signet_sync.text.chunking import ChunkSpan
from signet_sync.text.turn_heads import speaker_of
from signet_sync.web.markdown import Prose, open_fence

PART = 8_000  # tokens: about ten screens


class TurnView(NamedTuple):
    """What one speaker said; `goes_on` if it began in an earlier part. `at` is in microseconds.

    `line` is that of its heading, 0 if it has none.
    """

    speaker: str
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
    return Script(text, first, begun, tuple(chunking.pieces(text, PART, begun)))


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
    """Returns a turn between two positions, without its head."""
    speaker = speaker_of(turn.label)
    if begin > turn.start:
        fence = open_fence(script.text[turn.start : begin].split("\n"))
        return TurnView(speaker, turn.label, turn.at, 0, True, Prose(script.text[begin:end], line, fence))
    inner = line + script.text.count("\n", begin, turn.words)
    said = script.text[turn.words : end].removeprefix(" · ")
    # Words may follow the head on the same line.
    return TurnView(speaker, turn.label, turn.at, 0 if said[:1] not in ("", "\n") else inner, False, Prose(said, inner))
