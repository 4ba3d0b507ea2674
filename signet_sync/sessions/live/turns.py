"""Compares transcripts with live turns and kept segments; inserts the turns that a transcript lacks at their time.

A live turn was handed over while its session ran. In a transcript its head marks it: `## User · <time> · live` among
our heads, `## User (live · <time>)` among others, so that readers of labels such as `User:` still work.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from signet_sync.formats.body import normalize
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.text.chunking import HEAD, STAMP, TOOL_NAME, Speaker, speaker_of, tool_name, turns
from signet_sync.text.passages import indent, words_of
from signet_sync.text.redaction import begins

_LIVE = late(
    rf"^(?:(?:## (User|Assistant|Harness)|- ({TOOL_NAME})) · ({STAMP}) · live"
    rf"|## (?:(User|Assistant|System)|Tool ({TOOL_NAME})) \(live · ({STAMP})\))$",
    re.MULTILINE | re.ASCII,
)
_OURS = late(rf"^{HEAD}", re.MULTILINE | re.ASCII)
_REDACTED = late(r"\[REDACTED(?::[^\[\]\n]{0,80})?\]")
# For a turn with very many possible places, so many on either side of its own number are compared.
_NEAR = 32
# Two clocks that time the same turn differ by no more than this.
_APART_US = 60_000_000

_Like = tuple[Speaker, tuple[str, ...]]  # the speaker, and the lines that are not blank
_Place = tuple[int, int]


class SpokenTurn(NamedTuple):
    """A turn: its role, its sanitized words, its time (ISO 8601 UTC; empty if unknown)."""

    role: str
    text: str
    at: str = ""

    @property
    def at_us(self) -> int | None:
        """Returns when it was said, in microseconds since 1970 UTC."""
        return parse_instant(self.at) if self.at else None


# ── when two turns are the same ──


def canonical(role: str, text: str) -> _Like:
    """Returns a turn in the form in which turns are compared: equal forms are the same turn.

    It has the speaker and the lines that are not blank, without insignificant blanks.
    """
    return speaker_of(role), tuple(filter(None, map(_bare, text.split("\n"))))


def first_line(text: str) -> str:
    """Returns the first line of a turn in the form in which turns are compared."""
    return next(filter(None, map(_bare, text.split("\n"))), "")


def _bare(line: str) -> str:
    """Drops what is not compared: extra blanks, the backslash before a head's sign, the rule of a redaction."""
    line = " ".join(line.split())
    if "[REDACTED" in line:
        line = _REDACTED.sub("[REDACTED]", line)
    return line[1:] if line.startswith(("\\#", "\\- `")) else line


# ── a text, read turn by turn ──


class _TextSection(NamedTuple):
    """One turn in a text, from its heading to the next; the speaker before the first heading is unknown."""

    start: int
    words: int  # where its words begin
    end: int
    speaker: Speaker | None
    at_us: int | None


class _TextLine(NamedTuple):
    start: int
    end: int
    bare: str
    section: int


class _Text:
    """A transcript's text, split into sections and lines that are not blank."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sections = list(_sections(text))
        self.lines = [line for number, one in enumerate(self.sections) for line in _lines(text, number, one)]
        self._places: dict[str, list[int]] = {}
        for place, line in enumerate(self.lines):
            self._places.setdefault(line.bare, []).append(place)

    def candidates(self, said: Sequence[SpokenTurn]) -> list[list[_Place]]:
        """Returns where each turn may be: its first line, and the line after its last.

        Of very many places, those near its own number among equal turns count. A transcript's turn is surely a later
        one if it was said after the live turn was handed over.
        """
        known: dict[_Like, list[_Place]] = {}
        seen: Counter[_Like] = Counter()
        found = []
        for turn in said:
            like = canonical(turn.role, turn.text)
            if like not in known:
                known[like] = self._find(like)
            places, at_us = known[like], turn.at_us
            if len(places) > 2 * _NEAR:
                places = places[max(seen[like] - _NEAR, 0) : seen[like] + _NEAR]
                seen[like] += 1
            latest = None if at_us is None else at_us + _APART_US
            found.append([one for one in places if latest is None or (self._time_of(one) or 0) <= latest])
        return found

    def _time_of(self, place: _Place) -> int | None:
        return self.sections[self.lines[place[0]].section].at_us

    def _find(self, like: _Like) -> list[_Place]:
        speaker, wanted = like
        found = []
        for place in self._places.get(wanted[0], ()) if wanted else ():
            end, section = place + len(wanted), self.lines[place].section
            if (
                end <= len(self.lines)
                and self.lines[end - 1].section == section
                and self.sections[section].speaker in (None, speaker)
                and all(self.lines[place + n].bare == bare for n, bare in enumerate(wanted))
            ):
                found.append((place, end))
        return found


def _sections(text: str) -> Iterator[_TextSection]:
    begun = list(turns(text))
    starts = [turn.start for turn in begun]
    if not starts or starts[0]:
        yield _TextSection(0, 0, starts[0] if starts else len(text), None, None)
    for turn, end in zip(begun, [*starts[1:], len(text)], strict=False):
        yield _TextSection(turn.start, turn.words, end, speaker_of(turn.label), turn.at)


def _lines(text: str, number: int, section: _TextSection) -> Iterator[_TextLine]:
    start = section.words
    while start < section.end:
        end = text.find("\n", start, section.end)
        end = section.end if end < 0 else end
        if bare := _bare(text[start:end]):
            yield _TextLine(start, end, bare, number)
        start = end + 1


def _align(candidates: Sequence[Sequence[_Place]]) -> list[_Place | None]:
    """Chooses one possible place per turn: in order, none used twice, for as many turns as possible.

    The longest common subsequence by Hunt and Szymanski: `ends[n]` is where the best chain of n + 1 ends.
    """
    ends: list[int] = []
    last: list[tuple[int, _Place, object]] = []
    for turn, places in enumerate(candidates):
        for place in sorted(places, reverse=True):
            length = bisect_right(ends, place[0])
            if length < len(ends) and ends[length] <= place[1]:
                continue
            link = (turn, place, last[length - 1] if length else None)
            ends[length : length + 1] = [place[1]]
            last[length : length + 1] = [link]
    found: list[_Place | None] = [None] * len(candidates)
    step: object = last[-1] if last else None
    while isinstance(step, tuple):
        turn, place, step = step
        found[turn] = place
    return found


# ── what is live in a text ──


def live_turns_in(text: str) -> list[SpokenTurn]:
    """Returns the live turns of a transcript's text."""
    return [said for _, said in _live(text)]


def drop_live(text: str) -> str:
    """Returns the text without its live turns."""
    kept, at = [], 0
    for section, _ in _live(text):
        kept.append(text[at : section.start])
        at = section.end
    return ("".join(kept) + text[at:]).rstrip("\n") if at else text


def is_live(text: str) -> bool:
    """Returns whether a text consists of live turns only."""
    return bool(live_turns_in(text)) and not drop_live(text).strip()


def _live(text: str) -> Iterator[tuple[_TextSection, SpokenTurn]]:
    # Most texts have none: skip the parsing.
    if " · live" not in text and "(live · " not in text:
        return
    for section in _sections(text):
        heading = _LIVE.match(text, section.start)
        if heading:
            words = text[section.words : section.end].strip("\n")
            role, tool = heading[1] or heading[4], heading[2] or heading[5]
            yield section, SpokenTurn(role.lower() if role else tool.strip("`"), words, heading[3] or heading[6])


def turns_in(text: str) -> list[SpokenTurn]:
    """Returns the turns of a transcript's text, as far as headings or labels mark them."""
    return [
        SpokenTurn(one.speaker, text[one.words : one.end].strip("\n"), iso(one.at_us) if one.at_us is not None else "")
        for one in _sections(text)
        if one.speaker is not None
    ]


# ── turns and texts ──


def find_missing(text: str, said: Sequence[SpokenTurn]) -> list[int]:
    """Returns the places (indexes) of the turns that a text does not hold; turns without words are never lacking."""
    if not said:
        return []
    found = _align(_Text(text).candidates(said))
    return [place for place, where in enumerate(found) if where is None and canonical(*said[place][:2])[1]]


def drop_turns(text: str, said: Sequence[SpokenTurn], *, leading: bool = False) -> str:
    """Returns the text without the turns that are held elsewhere; with `leading`, only those at its beginning.

    A heading with nothing left below it is dropped.
    """
    if not said or not text.strip():
        return text
    read = _Text(text)
    held = [place for place in _align(read.candidates(said)) if place is not None]
    if leading:
        held = list(_list_from_first_line(held))
    if not held:
        return text
    gone = {number for start, end in held for number in range(start, end)}
    spans = [(read.lines[number].start, read.lines[number].end) for number in sorted(gone)]
    left = {line.section for number, line in enumerate(read.lines) if number not in gone}
    touched = {read.lines[number].section for number in gone}
    empty = [read.sections[number] for number in sorted(touched - left)]
    spans += [(section.start, section.end) for section in empty]
    return _cut_spans(text, spans)


def _list_from_first_line(held: Iterable[_Place]) -> Iterator[_Place]:
    """Yields places from the first line on, as long as each begins where the previous one ends."""
    line = 0
    for place in held:
        if place[0] != line:
            return
        yield place
        line = place[1]


def _cut_spans(text: str, spans: Iterable[_Place]) -> str:
    """Cuts spans out of a text, and the empty lines that this would leave around them."""
    kept, at = [], 0
    for start, end in sorted(spans):
        if start > at:
            kept.append(text[at:start])
        at = max(at, end)
    kept.append(text[at:])
    whole = kept[0]
    for piece in kept[1:]:
        whole = whole.rstrip("\n") + ("\n\n" if whole.strip() else "") + piece.lstrip("\n")
    return whole


def render(said: Iterable[SpokenTurn], *, ours: bool = True) -> str:
    """Renders live turns as a transcript shows them."""
    return "\n\n".join(_render_turn(turn, ours=ours) for turn in said)


def _render_turn(turn: SpokenTurn, *, ours: bool) -> str:
    speaker, words = speaker_of(turn.role), words_of(turn.text)
    tool = f"`{tool_name(turn.role)}`"
    if not ours:
        name = f"Tool {tool}" if speaker == "tool" else "System" if speaker == "harness" else speaker.capitalize()
        return f"## {name} (live · {turn.at})\n\n{words}"
    if speaker != "tool":
        return f"## {speaker.capitalize()} · {turn.at} · live\n\n{words}"
    return f"- {tool} · {turn.at} · live\n{indent(words)}"


def insert_live(text: str, said: Sequence[SpokenTurn], *, tail: bool = False) -> str:
    """Inserts turns into a text, each before the first heading of a later time, so that `drop_live` restores the text.

    In a text without times they are put at the end; at the beginning, if it is only the tail of the session.
    """
    if not said:
        return text
    sections = list(_sections(text)) if text.strip() else []
    if not sections:
        return render(said)
    begins = 0 if tail and all(one.at_us is None for one in sections) else len(sections)
    added: dict[int, list[SpokenTurn]] = {}
    number = 0
    for turn in said:
        after = (n for n in range(number, len(sections)) if (sections[n].at_us or 0) > (turn.at_us or 0))
        number = next(after, max(number, begins))
        # Before a text without a heading the turn would absorb its words.
        number += number == 0 and sections[0].speaker is None
        added.setdefault(number, []).append(turn)
    ours = _OURS.search(text) is not None
    pieces, at = [], 0
    for number in sorted(added):
        shown = render(added[number], ours=ours)
        if number >= len(sections):
            pieces += [text[at:].rstrip("\n"), "\n\n", shown]
            at = len(text)
        else:
            pieces += [text[at : sections[number].start], shown, "\n\n"]
            at = sections[number].start
    return "".join(pieces) + text[at:]


# ── what a transcript adds to the segments that are kept of its session ──


def new_part(whole: str, segments: Sequence[str]) -> str | None:
    """Returns what a whole transcript adds to its kept segments; None if it does not begin with them.

    Texts that are equal apart from redactions match too: the segments were written under other sanitizer rules. All
    texts are normalised bodies. The rest begins at a line; it is empty if nothing is new, also if the transcript is
    shorter than what is kept. The segments may come in any order (clocks do), and older ones may belong to what the
    harness has rewritten since.
    """
    # Cutting removed the empty lines between segments; a tail may have added some.
    kept = [text for segment in segments if (text := segment.lstrip("\n"))]
    rests = (_text_after_segments(whole, kept[first:]) for first in range(max(1, len(kept))))
    return next((rest for rest in rests if rest is not None), None)


def new_words(whole: str, segments: Sequence[str], *, tail: bool = False) -> str:
    """Returns what a transcript adds to its kept segments; all of it if it is another transcript.

    All texts are normalised bodies. With `tail`, it contains only what was said since. Where a segment holds live
    turns, what is kept is left out turn by turn.
    """
    live = [turn for text in segments for turn in live_turns_in(text)]
    if tail:
        return "" if whole in segments else normalize(drop_turns(whole, live, leading=True))
    if not live:
        rest = new_part(whole, segments) if segments else whole
        return whole if rest is None else rest
    for text in segments:
        whole = drop_turns(whole, turns_in(text))
    return normalize(whole).lstrip("\n")


def _text_after_segments(whole: str, kept: list[str]) -> str | None:
    at = 0
    while kept:
        start = _skip_empty_lines(whole, at)
        found = ((segment, end) for segment in kept if (end := begins(whole, start, segment)) >= 0)
        following, end = next(found, (None, at))
        if following is None:
            return "" if _is_beginning(whole[start:], kept) else None
        kept.remove(following)
        at = end
    if at and whole[at : at + 1] not in ("", "\n"):
        return None
    return whole[_skip_empty_lines(whole, at) :] if at else whole


def _is_beginning(left: str, kept: Sequence[str]) -> bool:
    """Returns whether the remaining text is empty, or the first lines of a kept segment."""
    return not left or any((end := begins(one, 0, left)) >= 0 and one[end : end + 1] in ("", "\n") for one in kept)


def _skip_empty_lines(text: str, at: int) -> int:
    while text.startswith("\n", at):
        at += 1
    return at
