"""Derives the outcome of a session from its transcript: what came out, how it ended, what was stated."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from signet_sync.digest.deeds import Deeds, Printed, read_fetched
from signet_sync.digest.record import is_trivial, is_unfinished, record_of, status_of
from signet_sync.digest.reports import headline, turn_notes
from signet_sync.digest.sentences import IS_CJK, overlap, stems
from signet_sync.digest.statements import Item, statements
from signet_sync.digest.turns import Turn, is_report, plain
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.digest_mark import Status

_PIECES = 3
_REQUEST = 300  # characters
_SAME, _FRESH = 0.6, 0.4  # of the words of what is told twice; of a report's those that say more
# What the person says next of what did not come out.
_DISPUTES = late(
    r"\b(?:still|does(?:n['’]t| not)|did(?:n['’]t| not)|is(?:n['’]t| not)|not) (?:\w+ )?"
    r"(?:work\w*|fail\w*|broken|happen\w*|fix\w*|help\w*)\b|\bsame (?:error|problem|issue|failure)\b",
    re.IGNORECASE,
)
_PASSING = late(r"Merge |(?:WIP|wip)\b|(?:fixup|squash|amend)! ")  # commits that no history keeps, or that say nothing
# What the person asked last: they stopped it, or the session ended before it was done.
STOPPED, UNFINISHED = "stopped: ", "unfinished: "
_PLAN = late(r"Implement the following plan:\s+#+ +(?:Plan: *)?([^\n]+)", re.IGNORECASE)
JOINT = late(r"[;；。](?=\s|$)|[,，、](?=\s)|\s[–—(]|\.(?=\s)|、")


class Outcome(NamedTuple):
    """The outcome of a session.

    `results` are the passages that say what came out, in their order; empty without any. `request` is the first one
    that is more than a greeting, of so many `messages` of the person. `edited` are the edited files with their
    number of edits. `opening` are the first words of all. `status` is None if the speakers cannot be told apart.
    `chosen`: a model chose the items.
    """

    results: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    status: Status | None = None
    request: str = ""
    edited: Mapping[str, int] = {}
    opening: str = ""
    chosen: bool = False
    messages: int = 0


class ModelDigest(NamedTuple):
    """What holds of a model's answer; without a sentence that of the rules stands, the items stand alone."""

    sentence: str | None = None
    items: tuple[Item, ...] = ()


def outcome(transcript: str) -> Outcome:
    """Returns the outcome of a (sanitized) transcript."""
    record = record_of(transcript)
    turns, deeds, own = record.turns, record.deeds, record.own
    found = Outcome(edited=deeds.files, opening=_find_opening(turns))
    if record.is_silent:
        return found
    requests = (_read_plan_title(turn) or " ".join(own[turn.number])[:_REQUEST] for turn in turns if turn.words)
    request = next((text for text in requests if len(stems(text)) > 1), "")  # more than a greeting
    found = found._replace(status=status_of(turns, deeds), request=request)
    if is_trivial(turns):
        return found
    return found._replace(
        results=tuple(_results(turns, deeds, own)), items=tuple(statements(record)), messages=len(own)
    )


def _read_plan_title(turn: Turn) -> str:
    """Returns the title of the plan that Claude Code hands to a new session in the person's name; empty without one."""
    found = _PLAN.match(turn.words.text) if turn.words else None
    return plain(found[1])[:_REQUEST] if found else ""


def _find_opening(turns: Sequence[Turn]) -> str:
    """Returns the first line with a letter or digit that anybody said."""
    said = (one for turn in turns[:20] for one in (turn.words, *turn.messages[:20]) if one is not None)
    lines = (line for one in said for line in one.text.split("\n", 50)[:50])
    return next((line.strip()[:400] for line in lines if any(map(str.isalnum, line[:400]))), "")


# ── what came out ──


def _results(turns: Sequence[Turn], deeds: Deeds, own: Mapping[int, Sequence[str]]) -> Sequence[str]:
    """Returns what came out: pull requests and commits by title, then what the last reports say beside them.

    What was asked last and not done stands second, before all that there may be no room for; at the end stands how the
    calls left the work, whatever is said of it.
    """
    fetched = read_fetched(turns)
    noted = _find_noted_outcome(turns, fetched)
    pieces = [*_tell_requests(deeds)]
    pieces += _choose_commits(deeds, pieces, 0 if noted else max(0, _PIECES - len(pieces) - 1))
    if noted:
        pieces.append(noted)
    else:
        for turn, report in _choose_reports(turns, deeds, own, len(pieces)):
            line = headline(report, fetched)
            if any(turn.number < at and name in line for name, at in deeds.removed.items()):
                continue  # what a later command removed did not come out
            fresh = stems(line) - stems(" ".join(pieces))
            if line and (not pieces or len(fresh) >= max(3, _FRESH * len(stems(line)))):
                pieces.append(line)
    if names := _name_files(deeds, " ".join(pieces).casefold()):
        pieces[-1:] = [f"{pieces[-1]} ({', '.join(names)})"] if pieces else [f"edited {', '.join(names)}"]
    pieces += _witness(deeds) if pieces else ()
    if left := _tell_left(turns[-1], deeds, own):
        pieces.insert(1, left)
    return pieces


def _tell_left(last: Turn, deeds: Deeds, own: Mapping[int, Sequence[str]]) -> str:
    """Returns what the person asked last, if it was not done after other work was; empty if it was."""
    asked = " ".join(own.get(last.number, ()))
    if len(stems(asked)) < 2:
        return ""
    if last.interrupted:
        return f"{STOPPED}{clip(asked, 12)}" if any(turn < last.number for turn in deeds.working_turns) else ""
    return f"{UNFINISHED}{clip(asked, 12)}" if is_unfinished(last, deeds) else ""


def _find_noted_outcome(turns: Sequence[Turn], fetched: Printed) -> str:
    """Returns what the agent handed over as the outcome of its last report, if that is not long ago."""
    for turn in reversed(turns[-3:]):
        said = [line.text for line in turn_notes(turn) if line.label == "outcome"]
        if said and not fetched.holds(said[-1]):
            return said[-1]
    return ""


def _tell_requests(deeds: Deeds) -> Iterator[str]:
    """Yields the last pull requests by title, and those that were merged without being opened here, by number."""
    for one in [one for one in deeds.requests.values() if one.title][-2:]:
        number = f" #{one.number}" if one.number else ""
        yield f"{one.title.strip(' .')} (PR{number}{' merged' if one.merged else ''})"
    merged = [f"#{one.number}" for one in deeds.requests.values() if one.merged and not one.title and one.number]
    if merged:
        yield f"PR{'s' if len(merged) > 1 else ''} {', '.join(merged[-4:])} merged"


def _choose_commits(deeds: Deeds, told: Sequence[str], most: int) -> Iterator[str]:
    """Yields the subjects of commits that no pull request says: of many the first ones and the last."""
    subjects = [one.subject.strip(" .") for one in deeds.commits if overlap(one.subject, " ".join(told)) < _SAME]
    subjects = [one for one in subjects if not _PASSING.match(one)] or subjects
    yield from dict.fromkeys([*subjects[:most], *subjects[-1:]] if len(subjects) > 1 else subjects)


def _choose_reports(
    turns: Sequence[Turn], deeds: Deeds, own: Mapping[int, Sequence[str]], named: int
) -> Sequence[tuple[Turn, str]]:
    """Returns the reports that say what no commit does: of the last turn with edits, or else the last one.

    Where nothing is named, also those of the two turns with most edits. What the person's next words say does not work
    came to nothing.
    """
    done = [
        (turn, turn.report.text)
        for turn, after in zip_longest(turns, turns[1:])
        if turn.report and turn.ended and is_report(turn.report.text)
        if not (after and deeds.edits[turn.number] and any(map(_DISPUTES.search, own.get(after.number, ()))))
    ]
    working = [(turn, text) for turn, text in done if turn.number in deeds.edits]
    last = (working or done)[-1:] if named < _PIECES else []
    most = [] if named else sorted(working, key=lambda one: -deeds.edits[one[0].number])[:2]
    return [(turn, text) for turn, text in done if any(turn is one for one, _ in (*most, *last))]


def _name_files(deeds: Deeds, told: str) -> Sequence[str]:
    """Returns the names of the two files with most edits, unless the first one is told."""
    by_edits = sorted(deeds.files, key=lambda path: -deeds.files[path])
    names = [one for one in dict.fromkeys(path.rpartition("/")[2] for path in by_edits) if one not in deeds.removed]
    if not names or names[0].casefold() in told:
        return ()
    return [name for name in names if 2 < len(name) <= 40][:2]


def _witness(deeds: Deeds) -> Iterator[str]:
    """Yields how the work was left, as the calls show it, whatever is said of it."""
    if deeds.commits and not any(one.merged for one in deeds.requests.values()):
        yield "committed and pushed" if deeds.pushed >= deeds.commits[-1].turn else "committed"
    if deeds.loose and deeds.uses_git:
        yield "later edits uncommitted" if deeds.commits else "not committed"


def clip(text: str, most: int) -> str:
    """Cuts a passage to about `most` words: at a joint of the sentence, else between words; never inside brackets."""
    text = " ".join(text.split())
    room = most * 7 if not IS_CJK.search(text) else most * 3
    if len(text) <= room:
        return text
    joints = [found.start() for found in JOINT.finditer(text, 0, room) if found.start() > 0.45 * room]
    cut = text[: joints[-1]] if joints else text[:room].rpartition(" ")[0] or text[:room]
    for opening, closing in ("()", "[]", "``", '""'):
        odd = cut.count(opening) % 2 if opening == closing else cut.count(opening) > cut.count(closing)
        cut = cut[: cut.rfind(opening)] if odd else cut
    return cut.rstrip(" ,;:-–—")
