"""Holds what is read of a transcript, so that several readers of one session parse it once.

It reads, too, what a letter or a number answers: the words of the agent's option that bears it, with what was asked.
Only where structure says it: the whole message names marks, the last report lists them from A or 1 without a gap, and a
question stands beside the list. A list without a question is a menu or a plan; who picks of it orders the next step.
"""

from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from signet_sync.digest.deeds import Deeds, Printed, deeds_of, read_printed
from signet_sync.digest.outcome import OFFERS
from signet_sync.digest.person import FENCE, OwnWords
from signet_sync.digest.sentences import is_question, split
from signet_sync.digest.turns import Turn, plain, turns_of
from signet_sync.formats.lazy_pattern import late

_ANSWER = 60  # characters of a message that is nothing but an answer
_BELOW = 6  # lines of words behind a list, among which its question may be
_NOUN = (
    r"(?:option|opci[oó]n|op[cç][aã]o|opzione|variante?|вариант|seçenek|approach|proposal|plan|选项|方案|案|옵션|#) ?"
)
_MARK = r"(?:[a-h]|[1-9])(?!\w)"
# "B", "2 and 3", "1 + 2", "go with A", "let's take option 2": nothing but marks, and a noun or a verb before them.
_NAMES = late(
    r"\W*(?:(?:let['’]?s |i['’]?d |i )?(?:go (?:with|for)|take|choose|pick|use|nimm|prends)\s+"
    rf"|(?:[\w'’]+\s+){{0,3}}(?={_NOUN}))?"
    rf"(?:{_NOUN})?{_MARK}(?:\W*(?:\s(?:and|und|et|y|e|и|và|ve)\s|[+,&/、和と]|\s)\W*(?:{_NOUN})?{_MARK})*[^\w?？]*",
    2,
)
_MARKS = late(rf"(?<!\w){_MARK}", 2)
_OPTION = late(
    rf"[ \t]*(?:[-*•][ \t]+|#+[ \t]+|\|[ \t]*)?\**(?:{_NOUN})?[\[(]?(?P<mark>[A-Ha-h]|[1-9])"
    r"(?:[\])]?\**[ \t]?[.):：|]|[ \t][—–](?=[ \t])|[\])])[\s*]*(?P<text>\S.*)",
    2,
)


class _List(NamedTuple):
    """Options by mark, in their order, and the lines of the first and the last one."""

    options: dict[str, str]
    first: int
    last: int


def match_answer(message: str, report: str) -> list[tuple[str, str]] | None:
    """Returns what a message picks of proposals: question (letters may have none) and option; None if it picks none.

    An empty list is an answer whose proposals do not stand there.
    """
    said = message.strip()
    if len(said) > _ANSWER or not _NAMES.fullmatch(said):
        return None
    marks = list(dict.fromkeys(one.upper() for one in _MARKS.findall(said)))
    lists, lines = _lists_of(report)
    first = "1" if marks[0].isdigit() else "A"
    found = next((one for one in reversed(lists) if first in one.options), None)
    if found is None or len(found.options) < 2 or not all(mark in found.options for mark in marks):
        return []
    asked = _find_question(lines, found)
    return [(asked, found.options[mark]) for mark in marks] if asked is not None else []


def _lists_of(report: str) -> tuple[list[_List], list[str]]:
    """Returns the lists of options of a report in their order, and its lines; letters and numbers are lists apart."""
    lines = FENCE.sub("", report).split("\n")
    running: dict[bool, _List] = {}
    ended: list[_List] = []
    for number, line in enumerate(lines):
        found = _OPTION.match(line)
        if found is None:
            continue
        mark, text = found["mark"].upper(), plain(found["text"].strip(" |"))
        before = running.get(mark.isdigit())
        if before is not None and ord(mark) == ord(next(reversed(before.options))) + 1:
            running[mark.isdigit()] = _List({**before.options, mark: text}, before.first, number)
            continue
        if before is not None:
            ended.append(running.pop(mark.isdigit()))
        if mark in "A1":
            running[mark.isdigit()] = _List({mark: text}, number, number)
    return sorted([*ended, *running.values()], key=lambda one: one.first), lines


def _find_question(lines: list[str], found: _List) -> str | None:
    """Returns the question beside a list; None if it offers work, or numbers have none: they are a plan or a menu."""
    above = [line for line in lines[: found.first] if line.strip() and not line.lstrip().startswith("|")][-1:]
    below = [line for line in lines[found.last + 1 :] if line.strip()][:_BELOW]
    offers = any(map(OFFERS.search, above))
    said = [*reversed(split(plain(" ".join(above)))), *(one for line in below for one in split(plain(line)))]
    asked = next((one for one in said if is_question(one) and not OFFERS.search(one)), "")
    return None if offers or not (asked or "A" in found.options) else asked


END = 400_000  # characters of a transcript's end that are quoted


class Record:
    """A (sanitized) transcript; each part is read when it is first asked for. Total, deterministic, linear."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def turns(self) -> list[Turn]:
        return turns_of(self.text)

    @cached_property
    def deeds(self) -> Deeds:
        return deeds_of(self.turns)

    @cached_property
    def printed(self) -> Printed:
        """Returns what the tools of each turn printed."""
        return read_printed(self.turns)

    @cached_property
    def own(self) -> OwnWords:
        """Returns the person's own sentences by turn."""
        return OwnWords(self.turns)

    @cached_property
    def picks(self) -> list[tuple[str, str, int]]:
        """Returns the agent's questions with what the person picked, and the turn: in a picker, or by letter or number.

        An option that a tool printed before is none of the agent's.
        """
        found: list[tuple[str, str, int]] = []
        proposals = ""  # what the message before answered
        for place, (before, turn) in enumerate(pairwise(self.turns), 1):
            report = before.report.text if before.report is not None else ""
            message = turn.words.text if turn.words is not None else ""
            said = match_answer(message, report)
            if said == [] and (said := match_answer(message, proposals)):
                found = [one for one in found if one[2] != before.number]
                report = proposals
            proposals = report if said else ""
            for asked, option in said or ():
                # Letters without a question answer a request.
                about = asked or " ".join(self.own.get(before.number, ())[-1:])
                if about and not self.printed.holds(option, place):
                    found.append((about, option, turn.number))
        return sorted([*self.deeds.picks, *found], key=lambda one: one[2])

    @cached_property
    def lines(self) -> dict[int, tuple[int, int]]:
        """Returns by turn the lines of the person's words and of the report."""
        words = {one.number: one.words.line if one.words else 1 for one in self.turns}
        return {
            one.number: (words[one.number], one.report.line if one.report else words[one.number]) for one in self.turns
        }

    @property
    def is_silent(self) -> bool:
        """Returns whether nobody said a word."""
        return not any(turn.words or turn.report for turn in self.turns)


def record_of(text: str) -> Record:
    """Reads a transcript; the last one is held unless it is long: at an end it is digested and then quoted."""
    return _hold_record(text) if len(text) <= END else Record(text)


@lru_cache(maxsize=1)
def _hold_record(text: str) -> Record:
    return Record(text)
