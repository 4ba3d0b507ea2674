"""Holds what is read of a transcript, so that several readers of one session parse it once.

A person's own words are told from what they pasted (logs, code, templates) by the shapes of lines. How a session ended
(aborted, blocked, open, question-only, else done) is told by its end and its deeds.
"""

import re
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import pairwise

from signet_sync.digest.deeds import Deeds, Printed, deeds_of, read_printed
from signet_sync.digest.reports import turn_notes
from signet_sync.digest.sentences import is_question, split, stems
from signet_sync.digest.turns import Turn, is_report, turns_of
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.digest_mark import Status
from signet_sync.text.prompt import is_greeting, is_small_talk

_HELD = 400_000  # characters of a transcript that is held


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
    def printed_texts(self) -> Printed:
        return read_printed(self.turns)

    @cached_property
    def own(self) -> dict[int, list[str]]:
        return {turn.number: own_words(turn.words.text) for turn in self.turns if turn.words is not None}

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
    return _hold_record(text) if len(text) <= _HELD else Record(text)


@lru_cache(maxsize=1)
def _hold_record(text: str) -> Record:
    return Record(text)


# ── the person's own words ──


_LONGEST, _LINE = 4_000, 2_000  # characters of a message's beginning, and of its end; of a line
_FENCE = late(r"^[ \t]*(```+|~~~+)[^\n]*\n.*?(?:^[ \t]*\1[^\n]*$|\Z)", re.M | re.S)
# Prompts, boxes, marks and trees of terminals; times, levels, frames and places of logs; headers; diffs.
_PRINTED = late(
    r"^\s*(?:[❯➜>$%⏺⎿✻✽│├└┌✔✗✘✓✕❌•]|#\s+\S+@|\+\d+ more lines|\(ctrl\+|[\w.-]+@[\w-]+[:~ ].{0,40}[%$#] "
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|TRACE|FATAL|FAIL(?:ED)?|PASS(?:ED)?)\b[\]: ]"
    r"|npm (?:ERR|error|WARN|warn)|error(?:\[\w+\])?:|warning:|fatal:|panic:|make(?:\[\d+\])?:|Traceback|File \"|at \S+ ?\(|\w*(?:Error|Exception):"
    r"|=> |#\d+ |@@ |diff --git|index [0-9a-f]{7}|\+\+\+|--- |[+-]\s{2,}|[|>]|[a-z][\w-]{1,30}: \S.{0,200}HTTP/|HTTP/\d|GET |POST |(?:From|To|Subject|Date|Cc): \S"
    r"|\S+\.(?:go|tsx?|jsx?|py|rs|java|rb|kt|c|cpp|h|cs|swift|php|vue)[:(]\d+|[0-9a-f]{7,40}\b|\d+ (?:passed|failed)|<\/?\w+[ >])"
)
_BETWEEN = 6  # lines between two printed ones that belong to them
# What programs say in the person's place: prompts of commands, skills, sub-agents and hooks, compactions.
_TEMPLATE = late(
    r"\s*(?:<[a-z][\w-]*>|You are (?:a|an|the)\b|This session is being continued|Base directory for this skill|Caveat:"
    r"|# AGENTS\.md|Stop hook feedback|Full transcript available|\[Image|---\n\w+:|Implement the following plan:)"
)
_ITEM = late(r"^\s*(?:[-*•]|\d{1,2}[.)]|#{1,6})\s+")


def own_words(text: str) -> list[str]:
    """Returns the sentences of a message that its person wrote."""
    if _TEMPLATE.match(text):
        return []
    if "```" in text or "~~~" in text:
        text = _FENCE.sub("\n\n", text)
    if len(text) > 2 * _LONGEST:
        text = f"{text[:_LONGEST]}\n\n{text[-_LONGEST:]}"
    lines = text.split("\n")
    printed = [place for place, line in enumerate(lines) if _PRINTED.match(line)]
    pasted = set(printed)
    for before, after in pairwise(printed):
        pasted.update(range(before, after) if after - before <= _BETWEEN else ())
    own = (line for place, line in enumerate(lines) if place not in pasted)
    said = (sentence.strip(" \t*_") for line in own for sentence in split(_ITEM.sub("", line[:_LINE])))
    return [one for one in said if len(one) > 1]


# ── how it ended ──


# An offer asks for nothing that is missing: the work is done without the answer.
_OFFERS = late(
    r"\b(?:want|would you like|like) me to\b|\bshall i\b|\bshould i (?:also|commit|push|go ahead|proceed|continue)\b"
    r"|\banything else\b|\bsoll ich\b|\bmöchtest du\b|\bveux-tu\b|\bvoulez-vous\b|\bquieres que\b|\bquer que\b"
    r"|\bvuoi che\b|ましょうか|要我|할까요|хотите",
    re.IGNORECASE,
)


def status_of(turns: Sequence[Turn], deeds: Deeds) -> Status | None:
    """Returns how a session ended, None where nobody's words can be told apart: the first that applies."""
    spoken = [turn for turn in turns if turn.words is not None]
    if not any(turn.report for turn in turns) and not spoken:
        return None
    last = turns[-1]
    if last.interrupted:
        # What was finished before is not undone by the stop of the last task.
        return "open" if any(turn < last.number for turn in deeds.working_turns) else "aborted"
    told = next((turn for turn in reversed(turns) if turn.report is not None and is_report(turn.report.text)), None)
    if told is not None and told.ended and any(line.label == "blocked" for line in turn_notes(told)):
        return "blocked"
    offers = deeds.has_changes and last.number not in deeds.working_turns
    if is_unfinished(last, deeds) or _asks(last, offers=offers) or (deeds.planned and not deeds.has_changes):
        return "open"
    if not deeds.has_changes and not deeds.picks and (_asks_only(spoken) or is_trivial(turns)):
        return "question-only"
    return "done"


def is_unfinished(last: Turn, deeds: Deeds) -> bool:
    """Returns whether a session ends in the middle of a turn's work; a commit as the last call finishes it."""
    if not last.steps:
        return last.words is not None and not is_small_talk(last.words.text)
    if not last.ended:
        return not any(commit.turn == last.number for commit in deeds.commits)
    return last.report is not None and not is_report(last.report.text)


def _asks(turn: Turn, *, offers: bool) -> bool:
    """Returns whether a question of the agent stands at the end; an offer to do more is one where nothing was done."""
    if turn.report is None or not turn.ended:
        return False
    said = split(turn.report.text.strip().rpartition("\n")[2])[-2:]
    return any(
        is_question(one.rstrip("*_ ")) and (offers or not _OFFERS.search(one)) and len(stems(one)) > 1 for one in said
    )


def _asks_only(spoken: Sequence[Turn]) -> bool:
    """Returns whether the person asked something, or said nothing."""
    said = [turn.words.text[:2_000].replace("\n", " ") for turn in spoken[:100] if turn.words is not None]
    return not said or any(is_question(sentence) for one in said for sentence in split(one))


def is_trivial(turns: Sequence[Turn]) -> bool:
    """Returns whether the person only greeted, and nothing was run."""
    words = [turn.words.text for turn in turns if turn.words is not None]
    return not any(turn.calls for turn in turns) and bool(words) and all(map(is_greeting, words))
