"""Chooses the turns of a transcript that answer a query: those with most of it, and answers to their questions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.recall.passages import PassageFinder
from signet_sync.recall.snippets import LONGEST_TURN
from signet_sync.text.chunking import TurnStart

MOST_SHOWN, MOST_TURNS = 600, 4  # characters of turns, and turns, of one transcript
_ANSWER = 0.5  # so much of a question's weight counts for the turn after it
_SPEAKER = 0.1  # of the query's weight: for a turn that begins with the name of someone whom the query names
_BLANK = late(r"\s*")
_NAMED = late(r"[^\W_]+(?=:)")


class ShownTurn(NamedTuple):
    """What a speaker (`User`) said, and where in it the best passage begins."""

    label: str
    text: str
    place: int


class _Turn(NamedTuple):
    label: str
    text: str
    weight: float
    whole: float
    place: int
    asks: bool


def best_turns(content: str, begun: Sequence[TurnStart], passages: PassageFinder) -> list[ShownTurn]:
    """Returns the best turns of a transcript in their order, as many as fit in `MOST_SHOWN`; [] if it has none."""
    starts = [turn.start for turn in begun]
    numbers = {bisect_right(starts, span[0]) - 1 for span in passages.spans(content)} - {-1}
    ends = [*starts[1:], len(content)]

    def read_turn(number: int) -> _Turn:
        turn = begun[number]
        return _read(turn.label, content[turn.words : ends[number]], passages)

    read = {number: read_turn(number) for number in numbers}
    for number in [number + 1 for number in numbers if read[number].asks and number + 1 < len(starts)]:
        turn = read.get(number) or read_turn(number)
        read[number] = turn._replace(weight=turn.weight + _ANSWER * read[number - 1].weight)
    order = sorted(read, key=lambda number: (-read[number].weight, -read[number].whole, number))
    return [ShownTurn(one.label, one.text, one.place) for one in map(read.__getitem__, sorted(_fitting(order, read)))]


def _fitting(order: Sequence[int], read: dict[int, _Turn]) -> Iterator[int]:
    left = MOST_SHOWN
    for number in order[:MOST_TURNS]:
        left -= min(len(read[number].text), LONGEST_TURN)
        if left < 0:
            return
        yield number


def _read(label: str, text: str, passages: PassageFinder) -> _Turn:
    best = passages.best(text)
    blank = _BLANK.match(text)
    named = _NAMED.match(text, blank.end() if blank else 0)
    weight = best.weight
    if named is not None and passages.spans(named[0]):
        weight += _SPEAKER * sum(passages.weights)
    return _Turn(label, text, weight, best.whole, best.start or 0, "?" in text)
