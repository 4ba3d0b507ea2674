"""Finds what a session states without a model: only from forms that are right on real sessions.

Options that the person picked, lines that the person labelled, and what the agent hands over. All else is a quote: "always" and "never", an agent's labelled lists and admissions were right in three
of ten cases of real sessions.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from signet_sync.digest.deeds import Printed
from signet_sync.digest.record import Record
from signet_sync.digest.reports import is_nothing, turn_notes, words_behind
from signet_sync.digest.sentences import is_question, overlap, split, stems
from signet_sync.digest.tried import find_dead_ends
from signet_sync.digest.turns import SpokenMessage, Turn
from signet_sync.formats.handle import STATEMENT
from signet_sync.formats.lazy_pattern import late

Kind = Literal["decision", "constraint", "blocker", "next", "preference", "note", "tried"]

ITEMS = 24
_NOTED = 30  # turns whose hand-overs are read
_LONGEST, _PICK = 400, 260
_GIT_KNOWS = late(r"^\W*(?:commit|push)\b", 2)  # of what is next: the state of the files says it, as of now
# What a reader, or an agent that gets it, could run.
_COMMAND = late(
    r"\|\s*(?:sudo )?\w{0,4}sh\b|&&|\s--[a-z]|\$\(|(?:^|[`:'\"(]\s*|\b(?:run|execute|call|type|start|mit|exécute[rz]?|lance[rz]?) `?)"
    r"(?:sudo|curl|wget|rm|mv|dd|chmod|chown|ssh|scp|eval|exec|npx|uvx|pipx?|npm|pnpm|yarn|bun|git|gh|docker|kubectl|terraform|aws"
    r"|python3?|node|bash|sh|make|cargo|go|brew|apt(?:-get)?|powershell|iex|iwr) (?!the\b|a\b|it\b|to\b|this\b)[\w./:$~-]",
    2,
)

# An option that is an act of the next minutes decides nothing, nor does what answers how to go on.
_ACT = late(
    r"^\W*(?:(?:yes|no|yep|ok(?:ay)?|sure|go|continue|proceed|(?:re-?)?run|start|stop|wait|retry|try|skip|cancel|abort|commit|push"
    r"|merge|approve|open|create|plan|implement|fix|later|now|not (?:now|yet)|ja|nein|weiter|jetzt|oui|non|sí|si|seguir|sim|não"
    r"|да|нет|evet|hayır|có|không)\b(?:\W+\w+){0,3}\W*$|はい|いいえ|続|是的?$|否|好的?$|继续|예\b|네\b|아니|계속)",
    2,
)
_GOES_ON = late(
    r"\b(?:next (?:step|task|move)|(?:do|happen|work on|tackle|start with) (?:next|first)|proceed|go on|continue"
    r"|(?:would|do) you (?:like|want) (?:me )?to do|nächste[rs]? schritt|weiter(?:machen|gehen)?|prochaine étape|continuer"
    r"|siguiente paso|próximo passo)\b|次の|下一步|继续|다음 (?:작업|단계)",
    2,
)
# With such a label a person means what follows to be kept; a message of many labels or words is a form or a paste.
_LABELS, _TYPED, _QUOTED = 3, 1_000, frozenset("“”„«»")
_KINDS: dict[Kind, str] = {
    "decision": "decision|decided|entscheidung|entschieden|beschluss|décision|décidé|decisión|decidido",
    "constraint": "constraint|rule", "note": "remember", "next": "next", "blocker": "blocked",
}  # fmt: skip
_KIND_OF: dict[str, Kind] = {label: kind for kind, labels in _KINDS.items() for label in labels.split("|")}
_LABELLED = late(rf"({'|'.join(_KIND_OF)}):\s+(\S.{{2,}})", re.IGNORECASE)
_LABEL = late(r"(?:^|[.!?] )\W*(?:[^\W\d_]+ ){0,2}[^\W\d_]{3,}\**:(?:\s|$)", re.MULTILINE)


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
    found = [*_list_labelled(record), *_list_of_note(record), *_list_picked(record)]
    relayed = Relayed(record)
    kept: list[Item] = []
    for item in found:
        if len(kept) >= ITEMS:
            break
        same = any(
            one.kind == item.kind and one.rule != "done" != item.rule and overlap(one.text, item.text) > 0.75
            for one in kept
        )
        if not same and not relayed.holds(item):
            kept.append(item)
    # The agent ran these commands itself.
    dead_ends = find_dead_ends(record.turns, record.own)
    return kept + [Item("tried", text, "agent", record.lines[turn][1], turn, "tried") for text, turn in dead_ends]


def _list_picked(record: Record) -> Iterator[Item]:
    for asked, said, turn in record.picks:
        text = tell_pick(asked, said)
        if text and not _ACT.match(said) and not _GOES_ON.search(asked):
            yield Item("decision", text, "person", record.lines[turn][0], turn, "picked")


def _list_labelled(record: Record) -> Iterator[Item]:
    """Yields what the person labelled; of what was next or blocked only that which no later work may have ended."""
    changed = record.deeds.last_turn
    for turn in record.turns:
        text = turn.words.text if turn.words is not None else ""
        if not 0 < len(text) <= _TYPED or ":" not in text or len(_LABEL.findall(text)) > _LABELS:
            continue
        for one in record.own[turn.number]:
            found = _LABELLED.fullmatch(one)
            label, said = found.groups() if found else ("", "")
            if not stems(said) or is_question(said) or is_nothing(said):
                continue
            kind = _KIND_OF[label.casefold()]
            quoted = said.count('"') % 2 or not _QUOTED.isdisjoint(said)
            passing = kind in ("next", "blocker") and (turn.number <= changed or _ACT.match(said))
            if not quoted and not passing:
                yield Item(kind, said[:_LONGEST], "person", record.lines[turn.number][0], turn.number, "labelled")


def tell_pick(asked: str, said: str) -> str:
    """Returns what was picked with what was asked; empty if the answer asks something itself, or is a long one."""
    if len(said) >= _PICK or any(map(is_question, split(said))):
        return ""
    return f"{asked[: _LONGEST - len(said)]} — {said}"


def _list_of_note(record: Record) -> Iterator[Item]:
    """Yields what the agent handed over at the end of its last reports; of each label the newest lines count."""
    told: set[str] = set()
    turns, deeds = record.turns, record.deeds
    changed = deeds.last_turn
    kinds: dict[str, Kind] = {"decided": "decision", "next": "next", "blocked": "blocker", "tried": "note"}
    for turn in reversed(turns[-_NOTED:]):
        lines = turn_notes(turn)
        for label, text, line in lines:
            if label == "outcome" and (ended := " ".join(STATEMENT.findall(text))):
                yield Item("next", f"{ended}: {text}"[:_LONGEST], "agent", line, turn.number, "done")
            kind = kinds.get(label)
            # What was next before the last work may be done since.
            passing = label in ("next", "blocked")
            if kind is None or (passing and (label in told or turn.number < changed or _GIT_KNOWS.match(text))):
                continue
            behind = words_behind(text, record.own) if label == "decided" else None
            if behind is not None:
                yield Item(kind, behind[1][:_LONGEST], "person", record.lines[behind[0]][0], behind[0], "note")
            else:
                yield Item(kind, text[:_LONGEST], "agent", line, turn.number, "note")
        told |= {line.label for line in lines}


class Relayed:
    """Tells statements that repeat what tools printed in a session, and an agent's commands that nobody asked for.

    Whatever somebody said in an earlier turn than a tool printed it is theirs: an agent writes files and reads them.
    """

    def __init__(self, record: Record) -> None:
        self._printed = record.printed
        self._of_person = Printed(one for said in record.own.values() for one in said)
        self._said = Printed("\n".join(_words_in(turn, record.own)) for turn in record.turns)
        self._places = {turn.number: place for place, turn in enumerate(record.turns, 1)}

    def holds(self, item: Item) -> bool:
        """Returns whether a statement is only relayed."""
        if item.who == "agent" and _COMMAND.search(item.text) and not self._of_person.holds(item.text):
            return True
        # A person may have pasted what a tool printed later.
        before = self._places[item.turn] - (item.who == "person")
        if item.rule == "picked" or not self._printed.holds(item.text, before):
            return False
        first = bisect_left(range(before), True, key=lambda place: self._printed.holds(item.text, place + 1))
        return not self._said.holds(item.text, first)


def _words_in(turn: Turn, own: Mapping[int, Sequence[str]]) -> Iterator[str]:
    yield from own.get(turn.number, ())
    yield from (step.text for step in turn.steps if isinstance(step, SpokenMessage))
