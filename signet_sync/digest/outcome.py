"""Derives the outcome of a session from its transcript: what came out, how it ended, what was stated."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from signet_sync.digest.deeds import Deeds, Printed, read_fetched
from signet_sync.digest.record import Record, is_trivial, is_unfinished, record_of, status_of
from signet_sync.digest.reports import headline, turn_notes
from signet_sync.digest.sentences import IS_CJK, overlap, stems
from signet_sync.digest.statements import Item, Kind, statements
from signet_sync.digest.turns import SpokenMessage, Turn, is_report
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.digest_mark import Status

__all__ = ["Item", "Kind", "ModelDigest", "Outcome", "outcome"]

_PIECES = 3
_PREFIX = late(
    r"^(?:feat|fix|chore|docs|refactor|tests?|style|perf|build|ci|revert|checkpoint)(?:\(([^)]+)\))?!?:\s*(.+)$"
)
_REQUEST = 300
_DISPUTES = late(
    r"\b(?:still|does(?:n['’]t| not)|did(?:n['’]t| not)|is(?:n['’]t| not)|not) (?:\w+ )?"
    r"(?:work\w*|fail\w*|broken|happen\w*|fix\w*|help\w*)\b|\bsame (?:error|problem|issue|failure)\b"
    r"|\b(?:funktioniert|geht) (?:immer noch |noch )?nicht|\bne (?:marche|fonctionne) (?:toujours )?pas|\bno funciona"
    r"|\bnão funciona|\bnon funziona|не работает|还是不|まだ(?:動|失敗)",
    2,
)
_JOINT = late(r"[;；。](?=\s|$)|[,，、](?=\s)|\s[–—(]|\.(?=\s)|、")


class Outcome(NamedTuple):
    """The outcome of a session.

    `results` are the passages that say what came out, in their order; empty without any. `request` is the first one
    that is more than a greeting, of so many `messages` of the person. `edited` are the edited files with their
    number of edits, `commands` the commands run, with whether the last run failed. `opening` are the first words of
    all. `status` is None if the speakers cannot be told apart. `chosen`: a model chose the items.
    """

    results: tuple[str, ...] = ()
    items: tuple[Item, ...] = ()
    status: Status | None = None
    request: str = ""
    edited: Mapping[str, int] = {}
    commands: Mapping[str, bool] = {}
    opening: str = ""
    chosen: bool = False
    messages: int = 0


class ModelDigest(NamedTuple):
    """What holds of a model's answer; without a sentence that of the rules stands, the items stand alone."""

    sentence: str | None = None
    items: tuple[Item, ...] = ()


def outcome(transcript: str | Record) -> Outcome:
    """Returns the outcome of a (sanitized) transcript."""
    record = record_of(transcript) if isinstance(transcript, str) else transcript
    turns, deeds = record.turns, record.deeds
    opening = _opening(turns)
    if record.is_silent:
        return Outcome(edited=deeds.files, commands=deeds.commands, opening=opening)
    own = record.own
    status = status_of(turns, deeds)
    request = _request(own)
    if is_trivial(turns):
        return Outcome((), (), status, request, deeds.files, deeds.commands, opening)
    results, stated = tuple(_results(turns, deeds, own)), tuple(statements(record))
    return Outcome(results, stated, status, request, deeds.files, deeds.commands, opening, messages=len(own))


def _opening(turns: Sequence[Turn]) -> str:
    """Returns the first line with a letter or digit that anybody said."""
    for turn in turns[:20]:
        for step in ([turn.words] if turn.words else []) + turn.steps[:20]:
            lines = step.text.split("\n", 50)[:50] if isinstance(step, SpokenMessage) else []
            for line in lines:
                if any(map(str.isalnum, line[:400])):
                    return line.strip()[:400]
    return ""


def _request(own: Mapping[int, Sequence[str]]) -> str:
    """Returns the first message of the person's own words that is more than a greeting."""
    return next((text for said in own.values() if len(stems(text := " ".join(said)[:_REQUEST])) > 1), "")


# ── what came out ──


def _results(turns: Sequence[Turn], deeds: Deeds, own: Mapping[int, Sequence[str]]) -> Iterator[str]:
    """Yields what came out: pull requests and commits by title, then the reports of what no commit names."""
    pieces = [*_requests(deeds)]
    told = " ".join(pieces)
    commits = [one for one in deeds.commits if overlap(one.subject, told) < 0.6]
    commits = [one for one in commits if not one.subject.startswith("Merge ")] or commits
    fetched = read_fetched(turns)
    noted = _find_noted_outcome(turns, fetched)
    # Of many, the first ones and the last; beside what the agent handed over, the last.
    most = 0 if noted else max(0, _PIECES - len(pieces) - 1)
    chosen = [*commits[:most], *commits[-1:]] if len(commits) > 1 else commits
    pieces += [_tidy(one.subject) for one in dict.fromkeys(chosen)]
    pieces += [noted] if noted else []
    for turn in _reporting(turns, deeds, own, len(pieces)) if not noted else ():
        assert turn.report is not None
        line = headline(turn.report.text, fetched)
        # What a report names and a later command removed did not come out.
        gone = any(turn.number < at and name in line for name, at in deeds.removed.items())
        if line and not gone and _is_fresh(line, pieces):
            pieces.append(line)
    named = " ".join(pieces).casefold()
    by_edits = sorted(deeds.files, key=lambda path: -deeds.files[path])
    names = [one for one in dict.fromkeys(path.rpartition("/")[2] for path in by_edits) if one not in deeds.removed]
    if names and names[0].casefold() not in named:
        names = [name for name in names if 2 < len(name) <= 40][:2]
        if names:
            pieces[-1:] = [f"{pieces[-1]} ({', '.join(names)})"] if pieces else [f"edited {', '.join(names)}"]
    pieces += _witness(deeds) if pieces else ()
    last = turns[-1]
    asked = " ".join(own.get(last.number, ())) if is_unfinished(last, deeds) and not last.interrupted else ""
    if len(stems(asked)) > 1:
        pieces.append(f"unfinished: {clip(asked, 12)}")
    yield from pieces


def _witness(deeds: Deeds) -> Iterator[str]:
    """Yields how the work was left, as the calls show it, whatever is said of it."""
    if deeds.commits and not any(one.merged for one in deeds.requests.values()):
        yield "committed and pushed" if deeds.pushed >= deeds.commits[-1].turn else "committed"
    if deeds.loose and deeds.uses_git:
        yield "later edits uncommitted" if deeds.commits else "not committed"
    if deeds.failing and deeds.changed:
        yield "the last test run failed"


def _is_fresh(line: str, pieces: Sequence[str]) -> bool:
    fresh = stems(line) - stems(" ".join(pieces))
    return not pieces or len(fresh) >= max(3, 0.4 * len(stems(line)))


def _find_noted_outcome(turns: Sequence[Turn], fetched: Printed) -> str:
    """Returns what the agent handed over as the outcome of its last report, if that is not long ago."""
    for turn in reversed(turns[-3:]):
        said = [line.text for line in turn_notes(turn) if line.label == "outcome"]
        if said and not fetched.holds(said[-1]):
            return said[-1]
    return ""


def _requests(deeds: Deeds) -> Iterator[str]:
    """Yields the last pull requests by title, and those that were merged without being opened here, by number."""
    titled = [one for one in deeds.requests.values() if one.title][-2:]
    for one in titled:
        number = f" {one.shown}" if one.shown else ""
        yield f"{_tidy(one.title)} (PR{number}{' merged' if one.merged else ''})"
    merged = [one.shown for one in deeds.requests.values() if one.merged and not one.title and one.shown]
    if merged:
        yield f"PR{'s' if len(merged) > 1 else ''} {', '.join(merged[-4:])} merged"


def _reporting(turns: Sequence[Turn], deeds: Deeds, own: Mapping[int, Sequence[str]], named: int) -> Sequence[Turn]:
    """Returns the turns whose reports say what no commit does: the last working one; without commits also two others.

    Those are the ones that did most. What the person's next words say does not work came to nothing.
    """
    done = [
        turn
        for turn, after in zip_longest(turns, turns[1:])
        if turn.report is not None and turn.ended and is_report(turn.report.text)
        if after is None or not (deeds.works(turn.number) and any(map(_DISPUTES.search, own.get(after.number, ()))))
    ]
    working = [turn for turn in done if turn.number in deeds.edits or turn.number in deeds.acts]
    if named:
        return (working or done)[-1:] if named < _PIECES else ()
    most = sorted(working, key=lambda turn: -2 * deeds.edits.get(turn.number, 0) - deeds.acts.get(turn.number, 0))[:2]
    return [turn for turn in working if turn in most or turn is working[-1]] or done[-1:]


def clip(text: str, most: int) -> str:
    """Cuts a passage to about `most` words: at a joint of the sentence, else between words; never inside brackets."""
    text = " ".join(text.split())
    room = most * 7 if not IS_CJK.search(text) else most * 3
    if len(text) <= room:
        return text
    joints = [found.start() for found in _JOINT.finditer(text, 0, room) if found.start() > 0.45 * room]
    cut = text[: joints[-1]] if joints else text[:room].rpartition(" ")[0] or text[:room]
    for opening, closing in ("()", "[]", "``", '""'):
        odd = cut.count(opening) % 2 if opening == closing else cut.count(opening) > cut.count(closing)
        cut = cut[: cut.rfind(opening)] if odd else cut
    return cut.rstrip(" ,;:-–—")


def _tidy(subject: str) -> str:
    """Returns a subject without its conventional prefix; the scope stays."""
    found = _PREFIX.match(subject)
    return (f"{found[1]}: {found[2]}" if found[1] else found[2]).strip(" .") if found else subject.strip(" .")
