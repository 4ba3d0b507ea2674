"""Quotes a session: its last reports and what its person said, each with speaker, turn and time.

A quote claims nothing: it is what was said, cut at sentences. Left out are code, tables and whatever a tool printed.
Beside them stand its deeds, by whose words a step of an earlier session is known to be done, and the commands that
worked, which are no dead ends any more.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from signet_sync.digest.record import Record, record_of
from signet_sync.digest.reports import drop_note, list_sentences, note_lines
from signet_sync.digest.statements import list_worked
from signet_sync.digest.turns import Turn, is_report
from signet_sync.formats.timestamps import parse_instant
from signet_sync.text.chunking import OUR_HEAD, is_ours
from signet_sync.text.phrases import Quote

REPORTS, REPORT, WORDS = 3, 1_200, 600  # reports of a session; characters of one, and of one message of the person
MESSAGES = 32  # of the person, the newest
DEEDS, WORKED = 60, 200
_PASTED = 24  # characters of a sentence that are known again
_LEAST = 12  # characters: "yes" and "go on" say nothing without what they answer
_STOPS = (".", "!", "?", ":", ";", ",", "…", "。", "！", "？", "：")


class SessionWords(NamedTuple):
    """The quotes of a session in the order of what was said, its deeds, and the commands that worked.

    A deed is a line: the title of a commit, behind branch and name where git printed them, or of a pull request.
    """

    quotes: tuple[Quote, ...]
    deeds: tuple[str, ...] = ()
    worked_commands: tuple[str, ...] = ()


def words_of(transcripts: Sequence[str]) -> SessionWords:
    """Returns what a session said, from its (sanitized) transcripts, oldest first."""
    found: list[Quote] = []
    deeds, commands = dict[str, None](), dict[str, None]()
    for transcript in reversed(transcripts):
        said = sum(one.speaker == "person" for one in found)
        record = record_of(transcript)
        lines = record.text.split("\n") if is_ours(record.text) else ()  # other forms have no times
        found[:0] = _quotes(record, lines, MESSAGES - said, REPORTS - (len(found) - said))
        deeds |= dict.fromkeys(_deeds(record))
        commands |= list_worked(record.turns)
    return SessionWords(tuple(found), tuple(deeds)[:DEEDS], tuple(commands)[-WORKED:])


def _deeds(record: Record) -> Iterator[str]:
    deeds = record.deeds
    yield from (f"[{one.branch} {one.name}] {one.subject}" if one.name else one.subject for one in deeds.commits)
    for one in deeds.requests.values():
        number = f"#{one.number}" if one.number else ""
        yield f"{one.title} {f'({number})' if one.merged else ''}".strip()
        if one.merged:
            yield f"Merge pull request {number}".rstrip()


def _quotes(record: Record, lines: Sequence[str], messages: int, reports: int) -> Iterator[Quote]:
    if messages or reports:
        found = [*_messages(record, messages), *_reports(record, reports)]
        for turn, speaker, line, said in sorted(found, key=lambda one: (one[0].number, one[1] == "agent")):
            yield Quote(turn.number, speaker, _time(lines, line), said)


_Found = tuple[Turn, Literal["person", "agent"], int, str]


def _messages(record: Record, most: int) -> Iterator[_Found]:
    for before, turn in reversed(list(enumerate(record.turns))) if most else ():
        own = record.own.get(turn.number, ())
        # What a tool printed before, the person only pasted.
        said = [one for one in own if len(one) < _PASTED or not record.printed_texts.holds(one, before)]
        if turn.words is not None and len(" ".join(said)) >= _LEAST:
            most -= 1
            yield turn, "person", turn.words.line, cut(said, WORDS)
            if not most:
                return


def _reports(record: Record, most: int) -> Iterator[_Found]:
    for turn in reversed(record.turns):
        if most and turn.report is not None and turn.ended and is_report(turn.report.text):
            text = turn.report.text
            said = (one for one in list_sentences(drop_note(text)) if not record.printed_texts.holds(one))
            told = [one if one.endswith(_STOPS) else f"{one};" for one in said]
            told += [f"{one.label.capitalize()}: {one.text.rstrip('.')}." for one in note_lines(text)]
            if quote := cut(told, REPORT):
                most -= 1
                yield turn, "agent", turn.report.line, quote


def cut(sentences: Iterable[str], most: int) -> str:
    """Joins sentences as far as they fit; the first one is cut at a word if it alone is too long."""
    kept = ""
    for sentence in sentences:
        sentence = " ".join(sentence.split())
        if len(kept) + len(sentence) + 1 > most:
            kept = kept or sentence[: sentence.rfind(" ", most // 2, most)].rstrip()
            return f"{kept.rstrip(' ;:')} …"
        kept = f"{kept} {sentence}" if kept else sentence
    return kept.rstrip(" ;:")


def _time(lines: Sequence[str], line: int) -> int | None:
    """Returns when the message was said that holds a line, from 1: the time in the heading above it."""
    for number in range(min(line, len(lines)) - 1, -1, -1):
        if lines[number][:3] in ("## ", "- `") and (head := OUR_HEAD.match(lines[number])) is not None:
            return parse_instant(head["at"])
    return None
