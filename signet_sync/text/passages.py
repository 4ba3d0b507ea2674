"""Cuts what an artifact says into passages, by which `recall` finds it, and leaves what tools printed apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.chunking import TurnStart, turns
from signet_sync.text.digest_mark import end_of
from signet_sync.text.turn_heads import speaker_of

LONGEST = 1_000  # characters
# By speaker: somebody's words that no turn frames are a text's.
Voice = Literal["person", "agent", "text", "tool"]
_VOICES: dict[str, Voice] = {"user": "person", "assistant": "agent"}
_ENDS = late(r"[.!?…][\s\"'”)\]]|[。！？]|\n")
_WORD = late(r"[^\W_]")


class Passage(NamedTuple):
    """Characters `start` to `end` of a body, of which turn (from 0; -1 without turns), and who says it."""

    start: int
    end: int
    turn: int
    voice: Voice


def passages(content: str, kind: str) -> list[Passage]:
    """Returns what an artifact says, in order, each at most `LONGEST` characters, and behind it what tools printed."""
    if kind != "transcript":
        return list(_cut(content, end_of(content), len(content), -1, "text"))
    begun = list(turns(content))
    said = list(_cut(content, 0, begun[0].start if begun else len(content), -1, "text"))
    printed: list[Passage] = []
    for number, (turn, end) in enumerate(_spans(begun, len(content))):
        voice = _VOICES.get(speaker_of(turn.label))
        if voice is not None:
            said += _cut(content, turn.words, end, number, voice)
        elif end > turn.words:
            printed.append(Passage(turn.words, end, number, "tool"))
    return said + printed


def _spans(begun: list[TurnStart], length: int) -> Iterator[tuple[TurnStart, int]]:
    return zip(begun, [*(turn.start for turn in begun[1:]), length], strict=False)


def _cut(content: str, start: int, end: int, turn: int, voice: Voice) -> Iterator[Passage]:
    """Yields the pieces of a turn that have words, cut where a sentence or line ends in their second half."""
    while start < end:
        stop = end if end - start <= LONGEST else _stop(content, start, start + LONGEST)
        if _WORD.search(content, start, stop):
            yield Passage(start, stop, turn, voice)
        start = stop


def _stop(content: str, start: int, most: int) -> int:
    half = start + LONGEST // 2
    ends = [found.end() for found in _ENDS.finditer(content, half, most)]
    if ends:
        return ends[-1]
    blank = content.rfind(" ", half, most)
    return blank + 1 if blank > 0 else most
