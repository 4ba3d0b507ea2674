"""Finds what a session states without a model: only from forms that are right on real sessions.

Options that the person picked, lines that the person labelled, what the agent hands over, and dead ends. All else is a
quote: "always" and "never", an agent's labelled lists and admissions were right in three of ten cases of real sessions.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from signet_sync.digest.deeds import SHELLS, Printed
from signet_sync.digest.record import Record
from signet_sync.digest.reports import find_own_sentence, turn_notes
from signet_sync.digest.sentences import is_question, overlap, split, stems
from signet_sync.digest.turns import ToolCall, Turn
from signet_sync.formats.handle import STATEMENT
from signet_sync.formats.lazy_pattern import late

Kind = Literal["decision", "constraint", "blocker", "next", "preference", "note", "tried"]

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
    return kept + _list_dead_ends(record)


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
            behind = find_own_sentence(text, record.own) if label == "decided" else None
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
        self._printed = record.printed_texts
        self._said = Printed(
            "\n".join((*record.own.get(turn.number, ()), *(one.text for one in turn.messages))) for turn in record.turns
        )
        self._places = {turn.number: place for place, turn in enumerate(record.turns, 1)}

    def holds(self, item: Item) -> bool:
        """Returns whether a statement is only relayed."""
        # A person may have pasted what a tool printed later.
        before = self._places[item.turn] - (item.who == "person")
        if item.rule == "picked" or not self._printed.holds(item.text, before):
            return False
        first = bisect_left(range(before), True, key=lambda place: self._printed.holds(item.text, place + 1))
        return not self._said.holds(item.text, first)


# ── dead ends: what could not work as it was tried, and what was done in its place ──
# From calls and what they gave back. That a test or a build fails is work, no dead end, and so is what worked later as
# it stands, in its session or another (`statements.validity`). No words of a tool are told: how it failed is one of a
# few phrases of ours.


_COMMAND, _CHAIN = 120, 400  # characters of a command, and of several
_LAST = 4  # lines in which a pipe leaves the error of what is before it
_NEAR = 8  # commands after a failure, among which is what was done in its place
_BEFORE = late(r"^(?:(?:cd|export|source) [^;&|]+(?:&&|;)\s*|[A-Za-z_]\w*=\S*\s+)+")
_BEHIND = late(r"(?:\s*(?:2>&1|2?>\s*/dev/null|\|\s*(?:tail|head|grep)\b[^|;&]*|\|\| true))+\s*$")
_JOINED = late(r"&&|;|\||\n|\\n|<<|\"")
_TOKEN = late(r"[\w@./:~]{3,}")
_NOT_FOUND = "command not found"  # in this shell alone, unless something else worked
_HOW = {
    "is not a command here": late(
        r"(?i)command not found|not recognized as an? |unrecognized (?:sub)?command|is not an? \w+ command"
        r"|unknown (?:sub)?command|no such (?:sub)?command|missing script|script not found|executable file not found"
    ),
    "has no such option": late(
        r"(?i)(?:illegal|unknown|invalid|unrecognized|unsupported|unexpected|no such) (?:option|flag|argument|switch)"
        r"|unknown shorthand flag|bad option|no library targets found"
    ),
    "works in another folder": late(
        r"(?i)could not find `?(?:cargo\.toml|package\.json|go\.mod|pom\.xml)|go\.mod file not found"
        r"|no rule to make target|not a git repository|ERR_PNPM_NO_IMPORTER"
    ),
    "needs what is not installed": late(r"(?i)no module named|cannot find module|modulenotfounderror|not installed"),
    "is expanded by the shell": late(r"no matches found:|event not found"),
}


def core_of(command: str) -> str:
    """Returns what a command line runs: without the folder and variables before it, and where its output goes."""
    return " ".join(_BEHIND.sub("", _BEFORE.sub("", command.strip())).split())


def list_worked(turns: Iterable[Turn]) -> dict[str, None]:
    """Returns what command lines ran that worked, each command of a chain; in their order.

    Where a pipe may hide how a command ended, what it printed must not tell of a failure.
    """
    found = dict[str, None]()
    for _, call in _list_commands(turns):
        if not (call.failed or "<<" in call.detail or ("|" in call.detail and _how_failed(call.output[-_LAST:]))):
            found |= dict.fromkeys(filter(_is_plain, map(core_of, call.detail.split("&&"))))
    return found


def _list_dead_ends(record: Record) -> list[Item]:
    calls = list(_list_commands(record.turns))
    worked = list_worked(record.turns) if any(call.failed for _, call in calls) else {}
    found: dict[str, Item] = {}
    for place, (turn, call) in enumerate(calls, start=1):
        core = core_of(call.detail) if call.failed else ""
        how = _how_failed(call.output) if _is_plain(core) and core not in worked else ""
        instead = _find_instead(core, calls[place : place + _NEAR]) if how else ""
        if how and (instead or _NOT_FOUND not in call.printed):
            text = f'"{core}" {how}' + (f'; "{instead}" worked' if instead else "")
            found.setdefault(text, Item("tried", text, "agent", record.lines[turn][1], turn, "tried"))
    return list(found.values())


def _list_commands(turns: Iterable[Turn]) -> Iterator[tuple[int, ToolCall]]:
    for turn in turns:
        yield from ((turn.number, call) for call in turn.calls if call.tool in SHELLS and len(call.detail) <= _CHAIN)


def _how_failed(output: Sequence[str]) -> str:
    printed = "\n".join(output)
    return next((phrase for phrase, pattern in _HOW.items() if pattern.search(printed)), "")


def _is_plain(core: str) -> bool:
    return 3 < len(core) <= _COMMAND and _JOINED.search(core) is None


def _find_instead(core: str, after: Iterable[tuple[int, ToolCall]]) -> str:
    """Returns the command that did in the place of another what that could not: the next one with half of its words."""
    wanted = set(_TOKEN.findall(core.replace("-", " ")))
    for _, call in after:
        other = "" if call.failed else core_of(call.detail)
        words = set(_TOKEN.findall(other.replace("-", " ")))
        if other != core and _is_plain(other) and 2 * len(wanted & words) >= max(len(wanted), len(words), 1):
            return other
    return ""
