"""Finds what a session states without a model: only from forms that are right on real sessions.

Options that the person picked, lines that the person labelled, and what the agent hands over. All else is a quote:
"always" and "never", an agent's labelled lists and admissions were right in three of ten cases of real sessions.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from signet_sync.digest.deeds import Printed
from signet_sync.digest.record import Record
from signet_sync.digest.reports import turn_notes, words_behind
from signet_sync.digest.sentences import is_question, overlap, split, stems
from signet_sync.digest.turns import SpokenMessage, Turn
from signet_sync.formats.handle import STATEMENT
from signet_sync.formats.lazy_pattern import late

Kind = Literal["decision", "constraint", "blocker", "next", "preference", "note"]

ITEMS = 24
_NOTED = 30  # turns whose hand-overs are read
_LONGEST, _PICK, _TYPED = 400, 260, 1_000  # characters of a statement, of an option, of a message with a label
# An act of the next minutes, what the agent may choose, and what to talk of decide nothing.
_ACT = late(
    r"^\W*(?:(?:yes|no|ok(?:ay)?|go|continue|proceed|(?:re-?)?run|start|stop|wait|retry|skip|cancel|commit|push|merge|later|now|next"
    r"|you decide|ja|nein|weiter|oui|non|sí|sim|não|да|нет|evet)\b(?:\W+\w+){0,3}\W*$"
    r"|はい|いいえ|続|是的?$|否|好的?$|继续|예\b|네\b|계속)",
    re.IGNORECASE,
)
_ASKS_FOR_ACT = late(
    r"what (?:would you like|do you want)(?: me)? to do\b|what(?:'s| is)? next\b|how .{0,20}\bproceed\b"
    r"|.{0,80}\b(?:discuss|more questions|ready to)\b",
    re.I,
)
_LABELLED = late(r"(decision|decided|rule|remember):\s+(\S.{2,})", re.IGNORECASE)
_KIND_OF: dict[str, Kind] = {"decision": "decision", "decided": "decision", "rule": "constraint", "remember": "note"}
_OF_NOTE: dict[str, Kind] = {"decided": "decision", "next": "next", "blocked": "blocker", "tried": "note"}


class Item(NamedTuple):
    """A statement: its kind, its words, who said it, the line of the message it stands in, its turn and its rule.

    By the rule `done` it names by their handles what a session carried out.
    """

    kind: Kind
    text: str
    who: Literal["person", "agent"]
    line: int
    turn: int
    rule: str


def statements(record: Record) -> list[Item]:
    """Returns the statements of a session, each once."""
    relayed = Relayed(record)
    kept: list[Item] = []
    for item in (*_list_labelled(record), *_list_of_note(record), *_list_picked(record)):
        same = any(
            one.kind == item.kind and one.rule != "done" != item.rule and overlap(one.text, item.text) > 0.75
            for one in kept
        )
        if len(kept) < ITEMS and not same and not relayed.holds(item):
            kept.append(item)
    return kept


def _list_picked(record: Record) -> Iterator[Item]:
    for asked, said, turn in record.deeds.picks:
        text = tell_pick(asked, said)
        if text and not _ACT.match(said) and not _ASKS_FOR_ACT.match(asked):
            yield Item("decision", text, "person", record.lines[turn][0], turn, "picked")


def tell_pick(asked: str, said: str) -> str:
    """Returns what was picked with what was asked; empty if the answer asks something itself, or is a long one."""
    if len(said) >= _PICK or any(map(is_question, split(said))):
        return ""
    return f"{asked[: _LONGEST - len(said)]} — {said}"


def _list_labelled(record: Record) -> Iterator[Item]:
    """Yields what the person wants to be kept, by the label before it."""
    for turn in record.turns:
        if turn.words is None or ":" not in turn.words.text or len(turn.words.text) > _TYPED:
            continue
        for one in record.own[turn.number]:
            found = _LABELLED.fullmatch(one)
            if found and stems(found[2]) and not is_question(one):
                kind = _KIND_OF[found[1].lower()]
                yield Item(kind, found[2][:_LONGEST], "person", record.lines[turn.number][0], turn.number, "labelled")


def _list_of_note(record: Record) -> Iterator[Item]:
    """Yields what the agent handed over at the end of its last reports; of each label the newest lines count."""
    told: set[str] = set()
    changed = max(record.deeds.working_turns, default=0)
    for turn in reversed(record.turns[-_NOTED:]):
        lines = turn_notes(turn)
        for label, text, line in lines:
            if label == "outcome" and (ended := " ".join(STATEMENT.findall(text))):
                yield Item("next", f"{ended}: {text}"[:_LONGEST], "agent", line, turn.number, "done")
            kind = _OF_NOTE.get(label)
            # What was next before the last work may be done since.
            passing = label in ("next", "blocked") and (label in told or turn.number < changed)
            if kind is None or passing:
                continue
            behind = words_behind(text, record.own) if label == "decided" else None
            if behind is not None:
                yield Item(kind, behind[1][:_LONGEST], "person", record.lines[behind[0]][0], behind[0], "note")
            else:
                yield Item(kind, text[:_LONGEST], "agent", line, turn.number, "note")
        told |= {line.label for line in lines}


class Relayed:
    """Tells statements that repeat what tools printed in a session.

    Whatever somebody said in an earlier turn than a tool printed it is theirs: an agent writes files and reads them.
    """

    def __init__(self, record: Record) -> None:
        self._printed = record.printed
        self._said = Printed("\n".join(_words_in(turn, record.own)) for turn in record.turns)
        self._places = {turn.number: place for place, turn in enumerate(record.turns, 1)}

    def holds(self, item: Item) -> bool:
        """Returns whether a statement is only relayed."""
        # A person may have pasted what a tool printed later.
        before = self._places[item.turn] - (item.who == "person")
        if item.rule == "picked" or not self._printed.holds(item.text, before):
            return False
        first = bisect_left(range(before), True, key=lambda place: self._printed.holds(item.text, place + 1))
        return not self._said.holds(item.text, first)


def _words_in(turn: Turn, own: Mapping[int, Sequence[str]]) -> Iterator[str]:
    yield from own.get(turn.number, ())
    yield from (step.text for step in turn.steps if isinstance(step, SpokenMessage))
