"""Tells how a session ended: aborted, blocked, open, question-only, else done. By its end and its deeds."""

from __future__ import annotations

from collections.abc import Sequence

from signet_sync.digest.blocks import label_of, names_label, passages
from signet_sync.digest.deeds import Deeds
from signet_sync.digest.notes import turn_notes
from signet_sync.digest.sentences import is_question, split, stems
from signet_sync.digest.turns import Turn, is_report
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.digest_mark import Status
from signet_sync.text.prompt import is_greeting, is_small_talk

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
