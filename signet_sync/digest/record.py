"""Holds what is read of a transcript, so that several readers of one session parse it once.

It reads, too, what a letter or a number answers: the words of the agent's option that bears it, with what was asked.
Only where structure says it: the whole message names marks, the last report lists them from A or 1 without a gap, and a
question stands beside the list. A list without a question is a menu or a plan; who picks of it orders the next step.

How a session ended (aborted, blocked, open, question-only, else done) is told by its end and its deeds.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import pairwise

from signet_sync.digest.deeds import Deeds, Printed, deeds_of, read_printed
from signet_sync.digest.person import FENCE, OwnWords
from signet_sync.digest.reports import turn_notes
from signet_sync.digest.sentences import is_question, split, stems
from signet_sync.digest.turns import Turn, is_report, label_of, names_label, passages, plain, turns_of
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.digest_mark import Status
from signet_sync.text.prompt import is_greeting, is_small_talk

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


def match_answer(message: str, report: str) -> list[tuple[str, str]]:
    """Returns what a message picks of proposals: question (letters may have none) and option; empty if it picks none."""
    said = message.strip()
    if len(said) > _ANSWER or not _NAMES.fullmatch(said):
        return []
    marks = list(dict.fromkeys(one.upper() for one in _MARKS.findall(said)))
    lines = FENCE.sub("", report).split("\n")
    options, first, last = _find_options(lines, "1" if marks[0].isdigit() else "A")
    if len(options) < 2 or not all(mark in options for mark in marks):
        return []
    # A list that offers work is a menu, and one of numbers without a question a plan.
    above = [line for line in lines[:first] if line.strip() and not line.lstrip().startswith("|")][-1:]
    below = [line for line in lines[last + 1 :] if line.strip()][:_BELOW]
    said_beside = [*reversed(split(plain(" ".join(above)))), *(one for line in below for one in split(plain(line)))]
    asked = next((one for one in said_beside if is_question(one) and not OFFERS.search(one)), "")
    if any(map(OFFERS.search, above)) or not (asked or "A" in options):
        return []
    return [(asked, options[mark]) for mark in marks]


def _find_options(lines: Sequence[str], opening: str) -> tuple[dict[str, str], int, int]:
    """Returns the last list of options from A or 1 without a gap, by mark, and its first and last line."""
    options, first, last = dict[str, str](), 0, 0
    for number, line in enumerate(lines):
        found = _OPTION.match(line)
        if found is None or found["mark"].isdigit() != opening.isdigit():
            continue
        mark, text = found["mark"].upper(), plain(found["text"].strip(" |"))
        if mark == opening:
            options, first, last = {mark: text}, number, number
        elif options and ord(mark) == ord(next(reversed(options))) + 1:
            options[mark], last = text, number
    return options, first, last


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
        for place, (before, turn) in enumerate(pairwise(self.turns), 1):
            report = before.report.text if before.report is not None else ""
            for asked, option in match_answer(turn.words.text, report) if turn.words is not None else ():
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


# ── how it ended: aborted, blocked, open, question-only, else done; by its end and its deeds ──


# An offer asks for nothing that is missing: the work is done without the answer.
OFFERS = late(
    r"\b(?:want|would you like|like) me to\b|\bshall i\b|\bshould i (?:also|commit|push|go ahead|proceed|continue)\b|\blet me know\b"
    r"|\banything else\b|\bsoll ich\b|\bmöchtest du\b|\bveux-tu\b|\btu veux que\b|\bon s'arrête\b|\bvoulez-vous\b|\bsouhaites?-tu\b|\bquieres que\b|\bquer que\b|\bvuoi che\b"
    r"|ましょうか|要我|需要我|할까요|хотите|ister mis|bạn có muốn",
    2,
)


def status_of(turns: Sequence[Turn], deeds: Deeds) -> Status | None:
    """Returns how a session ended, None where nobody's words can be told apart: the first that applies."""
    spoken = [turn for turn in turns if turn.words is not None]
    if not any(turn.report for turn in turns) and not spoken:
        return None
    last = turns[-1]
    if last.interrupted:
        # What was finished before is not undone by the stop of the last task.
        return (
            "open"
            if any(turn < last.number for turn in (*deeds.edits, *(one.turn for one in deeds.commits)))
            else "aborted"
        )
    report = last_report(turns)
    if report is not None and report.ended and _waits(report):
        return "blocked"
    if (
        is_unfinished(last, deeds)
        or asks(last, offers=deeds.changed and not deeds.works(last.number))
        or (deeds.planned and not deeds.changed)
    ):
        return "open"
    if not deeds.changed and not deeds.picks and (not spoken or _only_asked(turns)):
        return "question-only"
    return "done"


def last_report(turns: Sequence[Turn]) -> Turn | None:
    """Returns the last turn with a report, rather than with words like "committed"."""
    found = [turn for turn in turns if turn.report is not None and is_report(turn.report.text)]
    return found[-1] if found else None


def is_unfinished(last: Turn, deeds: Deeds) -> bool:
    """Returns whether a session ends in the middle of a turn's work; a commit as the last call finishes it."""
    if not last.steps:
        return last.words is not None and not is_small_talk(last.words.text)
    if not last.ended:
        return not any(commit.turn == last.number for commit in deeds.commits)
    return last.report is not None and not is_report(last.report.text)


def asks(turn: Turn, *, offers: bool = False) -> bool:
    """Returns whether a question of the agent stands at the end; an offer to do more is one where nothing was done."""
    if turn.report is None or not turn.ended:
        return False
    paragraph = [line for line in turn.report.text.strip().split("\n") if line.strip()][-1:]
    said = split(paragraph[0])[-2:] if paragraph else []
    return any(
        is_question(one.rstrip("*_ ")) and (offers or not OFFERS.search(one)) and len(stems(one)) > 1 for one in said
    )


def _waits(turn: Turn) -> bool:
    assert turn.report is not None
    if any(line.label == "blocked" for line in turn_notes(turn)):
        return True
    found = passages(turn.report.text) if names_label(turn.report.text, "blocker") else ()
    return any(
        passage.form != "heading" and label_of(passage.label) == "blocker" and len(stems(passage.text)) > 1
        for passage in found
    )


def _only_asked(turns: Sequence[Turn]) -> bool:
    """Returns whether the person's messages were questions, or nothing but a word or two."""
    said = [turn.words.text[:2_000].replace("\n", " ") for turn in turns if turn.words is not None][:100]
    return any(is_question(sentence) for one in said for sentence in split(one)) or is_trivial(turns)


def is_trivial(turns: Sequence[Turn]) -> bool:
    """Returns whether the person only greeted, and nothing was run."""
    words = [turn.words.text for turn in turns if turn.words is not None]
    return not any(turn.worked for turn in turns) and bool(words) and all(map(is_greeting, words))
