"""Compares transcripts with live turns and kept segments; inserts the turns that a transcript lacks at their time.

A live turn was handed over while its session ran. In a transcript its head marks it: `## User · <time> · live` among
our heads, `## User (live · <time>)` among others, so that readers of labels such as `User:` still work.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
        """Returns where each turn may be: its first line, and the line after its last."""
        return _candidates(said, self._find, lambda line: self.sections[self.lines[line].section].at_us)

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


def _candidates(
    said: Sequence[SpokenTurn], find: Callable[[_Like], list[_Place]], at_of: Callable[[int], int | None]
) -> list[list[_Place]]:
    """Returns each turn's possible places; if there are very many, those near its own number among equal turns.

    A transcript's turn is surely a later one if it was said after the live turn was handed over.
    """
    known: dict[_Like, list[_Place]] = {}
    seen: Counter[_Like] = Counter()
    found = []
    for turn in said:
        like = canonical(turn.role, turn.text)
        if like not in known:
            known[like] = find(like)
        places, at_us = known[like], turn.at_us
        if len(places) > 2 * _NEAR:
            places = places[max(seen[like] - _NEAR, 0) : seen[like] + _NEAR]
            seen[like] += 1
        latest = None if at_us is None else at_us + _APART_US
        found.append([one for one in places if latest is None or (at_of(one[0]) or 0) <= latest])
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
    if (" · live" not in text and "(live · " not in text) or not _LIVE.search(text):
        return
    for section in _sections(text):
        heading = _LIVE.match(text, section.start)
        if heading:
            words = text[section.words : section.end].strip("\n")
            if heading[2]:
                words = "\n".join(line.removeprefix("  ") for line in words.split("\n"))
            role, tool = heading[1] or heading[4], heading[2] or heading[5]
            yield section, SpokenTurn(role.lower() if role else tool.strip("`"), words, heading[3] or heading[6])


def turns_in(text: str) -> list[SpokenTurn]:
    """Returns the turns of a transcript's text, as far as headings or labels mark them."""
    return [
        SpokenTurn(one.speaker, text[one.words : one.end].strip("\n"), iso(one.at_us) if one.at_us is not None else "")
        for one in _sections(text)
        if one.speaker is not None
    ]


def is_cut(text: str, rest: str) -> bool:
    """Returns whether the rest of a text begins within a turn."""
    return bool(rest.strip()) and bool(turns_in(text)) and next(_sections(rest)).speaker is None


# ── turns and texts ──


def missing_in(text: str, said: Sequence[SpokenTurn]) -> list[int]:
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


def insert_live(
    text: str, said: Sequence[SpokenTurn], absent: Collection[int], *, begins: str | None = None, tail: bool = False
) -> str:
    """Inserts the absent turns into a text, each after what was said before it.

    Other turns and the times of headings determine the place. Without either, turns are put at the end; or at the
    beginning, if the text is only the tail of the session, or the turns are older than `begins`.
    """
    if not absent:
        return text
    read = _Text(text)
    if not read.lines:
        return render(said[place] for place in sorted(absent))
    absent_places = set(absent)
    found = _align([[] if place in absent_places else one for place, one in enumerate(read.candidates(said))])
    added: dict[int, list[SpokenTurn]] = {}
    after = 0  # the earliest section before which the next turn may be inserted
    for place, turn in enumerate(said):
        where = found[place]
        if where is not None:
            after = read.lines[where[0]].section + 1
        elif place in absent_places:
            following = next((one for one in found[place:] if one is not None), None)
            last = len(read.sections) if following is None else max(read.lines[following[0]].section, after)
            at_us = turn.at_us
            later = (n for n in range(after, last) if at_us is not None and (read.sections[n].at_us or 0) > at_us)
            number = next(later, last)
            if after == 0 and following is None and number == last and _is_before(read.sections, turn, begins, tail):
                number = 0
            # Before a text without a heading the turn would absorb its words.
            number += number == 0 and read.sections[0].speaker is None
            added.setdefault(number, []).append(turn)
    return _insert_turns(text, read.sections, added)


def _is_before(sections: Sequence[_TextSection], turn: SpokenTurn, begins: str | None, tail: bool) -> bool:
    """Returns whether a turn precedes all of a text whose headings have no times."""
    if any(section.at_us is not None for section in sections):
        return False
    first_us = parse_instant(begins) if begins else None
    return tail if first_us is None else (turn.at_us or 0) < first_us


def _insert_turns(text: str, sections: Sequence[_TextSection], added: Mapping[int, Sequence[SpokenTurn]]) -> str:
    """Inserts turns before some sections, so that `drop_live` restores the text."""
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


def find_recorded_entries(entries: Sequence[tuple[str, str, int]], said: Sequence[SpokenTurn]) -> set[int]:
    """Returns the indexes of transcript entries (role, words, µs since 1970) that are among live turns."""
    if not said:
        return set()
    wanted: dict[_Like, list[_Place]] = {}
    for place, (role, text, _) in enumerate(entries):
        wanted.setdefault(canonical(role, text), []).append((place, place + 1))
    candidates = _candidates(said, lambda like: wanted.get(like, []), lambda place: entries[place][2])
    return {place[0] for place in _align(candidates) if place is not None}


# ── what a transcript adds to the segments that are kept of its session ──


def _exact_end(whole: str, at: int, part: str) -> int:
    return at + len(part) if whole.startswith(part, at) else -1


def new_part(whole: str, segments: Sequence[str]) -> str | None:
    """Returns what a whole transcript adds to its kept segments; None if it does not begin with them.

    Texts that are equal apart from redactions match too: the segments were written under other sanitizer rules. All
    texts are normalised bodies. The rest begins at a line; it is empty if nothing is new, also if the transcript is
    shorter than what is kept. The segments may come in any order (clocks do), and older ones may belong to what the
    harness has rewritten since.
    """
    kept = _drop_leading_lines(segments)
    for ends in (_exact_end, begins):
        for first in range(max(1, len(kept))):
            rest = _text_after_segments(whole, kept[first:], ends)
            if rest is not None:
                return rest
    return None


def new_words(whole: str, segments: Sequence[str], *, tail: bool = False) -> str:
    """Returns what a transcript adds to its kept segments; all of it if it is another transcript.

    All texts are normalised bodies. With `tail`, it contains only what was said since. Where a segment holds live
    turns, they are left out turn by turn.
    """
    live = [said for text in segments if (said := live_turns_in(text))]
    if tail:
        return (
            ""
            if whole in segments
            else normalize(drop_turns(whole, [turn for said in live for turn in said], leading=True))
        )
    # With live turns, text counts as new only if it follows all segments together.
    rest = _text_after_all_segments(whole, segments) if live else new_part(whole, segments) if segments else whole
    if rest is not None or not live:
        return whole if rest is None else rest
    left = whole
    for said in live:
        left = drop_turns(left, said)
    bare = [text for segment in segments if (text := normalize(drop_live(segment))).strip()]
    rest = new_part(normalize(left).lstrip("\n"), bare) if bare else left
    if rest is None or is_cut(whole, rest):
        # One segment's text is in the middle of another's: compare all of it.
        rest = left
        for text in bare:
            rest = drop_turns(rest, turns_in(text))
    return normalize(rest).lstrip("\n")


def _text_after_all_segments(whole: str, segments: Sequence[str]) -> str | None:
    rests = (_text_after_segments(whole, _drop_leading_lines(segments), ends) for ends in (_exact_end, begins))
    return next((rest for rest in rests if rest is not None), None)


def _drop_leading_lines(segments: Sequence[str]) -> list[str]:
    # Cutting removed the empty lines between segments; a tail may have added some.
    return [text for segment in segments if (text := segment.lstrip("\n"))]


def _text_after_segments(whole: str, kept: list[str], ends: Callable[[str, int, str], int]) -> str | None:
    at = 0
    while kept:
        start = _skip_empty_lines(whole, at)
        found = ((segment, end) for segment in kept if (end := ends(whole, start, segment)) >= 0)
        following, end = next(found, (None, at))
        if following is None:
            return "" if _is_beginning(whole, start, kept, ends) else None
        kept.remove(following)
        at = end
    if at and whole[at : at + 1] not in ("", "\n"):
        return None
    return whole[_skip_empty_lines(whole, at) :] if at else whole


def _is_beginning(whole: str, start: int, kept: Sequence[str], ends: Callable[[str, int, str], int]) -> bool:
    """Returns whether the remaining text is empty, or the first lines of a kept segment."""
    left = whole[start:]
    return not left or any((end := ends(s, 0, left)) >= 0 and s[end : end + 1] in ("", "\n") for s in kept)


def _skip_empty_lines(text: str, at: int) -> int:
    while text.startswith("\n", at):
        at += 1
    return at
