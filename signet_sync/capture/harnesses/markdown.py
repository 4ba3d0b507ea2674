"""Renders a conversation as Markdown: readable in a vault, deterministic, with turn headings that cannot be forged."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from signet_sync.capture.harnesses.reader import EntryKind, TranscriptEntry
from signet_sync.digest.deeds import Printed, fetches
from signet_sync.digest.sentences import split
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.timestamps import iso, parse_instant
from signet_sync.text.chunking import HEAD, tool_name
from signet_sync.text.passages import indent, words_of
from signet_sync.text.redaction import begins, is_marked
from signet_sync.text.sanitizer import has_controls, sanitize_transcript_v2

_MOST_SENTENCES, _LINE = 1_000, 2_000  # the newest that are looked for; characters
_LISTED = late(r"\s*(?:[-*+•・☐]|\[[ x~]\]|\d+[.)]|#{1,6}|>|\|)\s*")
_PARTS = late(r"\s*\|\s*|(?<=[:：])[\s*]+")


def repeats(entries: Sequence[TranscriptEntry], hidden: Sequence[tuple[int, str]]) -> dict[int, list[str]]:
    """Returns by an entry's place the sentences of its words that stand in hidden results of earlier places.

    `hidden` has the place and the text of each, oldest first. Words that were said before are those of whoever said
    them.
    """
    printed = Printed(text for _, text in hidden)
    said: dict[str, int] = {}
    for place, entry in enumerate(entries):
        if entry.kind in ("user", "assistant"):
            for line in entry.text.split("\n"):
                listed = _LISTED.match(line[:_LINE])
                rest = line[listed.end() if listed else 0 : _LINE]
                told = [line] if entry.kind == "user" else chain(*map(_PARTS.split, split(rest)))
                for sentence in filter(str.strip, told):
                    said.setdefault(sentence, place)
    found: dict[int, list[str]] = {}
    for sentence, place in list(said.items())[-_MOST_SENTENCES:]:
        # A person may say much the same; what they paste is the same.
        asked = printed.holds_all if entries[place].kind == "user" else printed.holds
        if asked(sentence, bisect_left(hidden, (place, ""))):
            found.setdefault(place, []).append(sentence)
    return found


# How much of a tool's result is shown; of a longer result the beginning and the end.
HEAD_LINES, TAIL_LINES = 10, 5
HEAD_CHARACTERS, TAIL_CHARACTERS = 800, 400

_FAILED = " · failed"
_SPEAKERS = {"user": "User", "assistant": "Assistant", "event": "Harness", "compaction": "Compaction"}
_REPEATED = ("user", "compaction")  # each turn of them has its own head
_ITEMS = ("tool", "subagent", "result")
_SPECIAL = late(r"([\\*_`\[\]<>#~|%$=])")
_TICKS = late("`+")
_FIRST_HEAD = late(rf"^{HEAD}", re.MULTILINE | re.ASCII)


def render(entries: Sequence[TranscriptEntry], before: Sequence[TranscriptEntry] = ()) -> str:
    """Renders the entries as Markdown, unsanitized except for results that had to be cut.

    Each turn has a head (`text.chunking`), but turns of the assistant or of the harness that follow each other have
    one. The words are kept as they are, except for lines that look like heads and code fences that are left open. Calls
    of tools and sub-agents have their results below them if these are among the entries, else results have a head.
    Words that stand in a result which is not shown whole, or in one of the entries `before`, follow what it gave back:
    without that nobody could tell later whose they are.
    """
    answers, answered = _answers(entries)
    said_before = _find_repeats(entries, before)
    blocks: list[str] = []
    speaker = ""
    for place, entry in enumerate(entries):
        if place in answered:
            continue
        for result in said_before.get(place, ()):
            given = _item(result, ())
            blocks += [given] if speaker in ("assistant", "tool") else [_make_heading("assistant", entry.at), given]
            speaker = "tool"
        if entry.kind in _ITEMS:
            text = _item(entry, answers.get(place, ()))
            if speaker == "tool":
                blocks[-1] += "\n" + text
            else:
                # Else it would stand in the person's section.
                blocks += [text] if speaker == "assistant" else [_make_heading("assistant", entry.at), text]
            speaker = "tool"
            continue
        text = _block(entry)
        if text or entry.kind in _REPEATED:
            if entry.kind in _REPEATED or entry.kind != speaker:
                blocks.append(_make_heading(entry.kind, entry.at))
            blocks += [text] if text else []
            speaker = entry.kind
    return "\n\n".join(blocks)


def entries_after(entries: Sequence[TranscriptEntry], boundary: int, last_body: str) -> tuple[TranscriptEntry, ...]:
    """Returns the entries that a segment ending at `boundary` (microseconds) with text `last_body` does not contain.

    Later entries are new. Entries in the boundary's own millisecond (files store milliseconds) are old if the body
    shows them in sanitized form: each at its own position, so that words said twice count twice. If several segments
    end in that millisecond, `last_body` is all of their bodies, one after the other.
    """
    limit = boundary // 1000
    body = _Body(last_body)
    new = []
    for entry in entries:
        moment = entry.at // 1000
        if moment > limit or (moment >= body.opened and not body.shows(entry) and moment == limit):
            new.append(entry)
    return tuple(new)


def entries_after_text(entries: Sequence[TranscriptEntry], text: str) -> tuple[TranscriptEntry, ...]:
    """Returns the entries after the last one that a transcript shows; none without a text."""
    body = _Body(text)
    shown = [place for place, entry in enumerate(entries) if body.shows(entry)]
    return tuple(entries[shown[-1] + 1 :]) if text and shown else ()


# ── turns ──


def _make_heading(kind: EntryKind, at: int) -> str:
    # Asterisks, not dashes: dashes would turn the line above into a heading, or start frontmatter.
    divider = "***\n\n" if kind == "compaction" else ""
    return f"{divider}## {_SPEAKERS[kind]} · {iso(at)}"


def _block(entry: TranscriptEntry) -> str:
    if entry.kind == "event":
        return f"*{_escape_line(entry.text)}*" if entry.text.strip() else ""
    if entry.kind == "compaction":
        how = f" ({_escape_line(entry.name)})" if entry.name else ""
        end = "the summary stands in its own artifact" if entry.text.strip() else "the harness handed over no summary"
        return f"*The conversation up to here was compacted{how}; {end}.*"
    return words_of(entry.text)


# ── tools ──


def _answers(entries: Sequence[TranscriptEntry]) -> tuple[dict[int, list[TranscriptEntry]], set[int]]:
    """Returns the results of each call by the call's position, and the positions of these results."""
    calls: dict[str, int] = {}
    answers: dict[int, list[TranscriptEntry]] = {}
    answered = set()
    for place, entry in enumerate(entries):
        if entry.kind in ("tool", "subagent") and entry.call:
            calls[entry.call] = place
        elif entry.kind == "result" and entry.call in calls:
            answers.setdefault(calls[entry.call], []).append(entry)
            answered.add(place)
    return answers, answered


def _item(entry: TranscriptEntry, results: Iterable[TranscriptEntry]) -> str:
    """Renders a list item: a call with its results, or a result whose call is in an earlier segment."""
    if entry.kind == "result":
        results = [entry]
    line = _call_line(entry)
    if entry.failed or any(result.failed for result in results):
        line += _FAILED
    return "\n".join([line, *filter(None, map(_excerpt, results))])


def _call_line(entry: TranscriptEntry) -> str:
    agent = "sub-agent " if entry.kind == "subagent" else ""
    head = f"- {agent}`{tool_name(entry.name)}` · {iso(entry.at)}"
    if entry.kind == "result":
        return f"{head} · gave back"
    return f"{head} · {_code(entry.text)}" if entry.text.strip() else head


def _excerpt(result: TranscriptEntry) -> str:
    """Renders a result in a fence, indented to belong to its item; empty if there is nothing to show."""
    lines = _list_result_lines(result)
    if not lines:
        return ""
    longest = max((len(run) for line in lines for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return indent("\n".join((fence, *lines, fence)))


def _list_result_lines(result: TranscriptEntry) -> list[str]:
    text = result.text
    if has_controls(text) or "`" in text:  # what the sanitizer will remove could hide a fence
        text = sanitize_transcript_v2(text)
    text = text.strip("\n")
    if not text.strip():
        return []
    lines = text.split("\n")
    if _is_whole(text) and not result.omitted:
        return lines
    # Half a secret is no longer recognised as one: sanitize first, then cut.
    text = sanitize_transcript_v2(text).strip("\n")
    lines = text.split("\n")
    head = "\n".join(lines[:HEAD_LINES])[:HEAD_CHARACTERS]
    rest = text[len(head) :]
    tail = "\n".join(rest.split("\n")[-TAIL_LINES:])[-TAIL_CHARACTERS:]
    left_out = result.omitted + len(rest) - len(tail)
    gap = [f"… {left_out:,} characters left out"] if left_out > 0 else []
    return [*head.split("\n"), *gap, *tail.strip("\n").split("\n")]


def _is_whole(text: str) -> bool:
    """Returns whether a result is short enough to be shown whole."""
    return len(text) <= HEAD_CHARACTERS + TAIL_CHARACTERS and text.count("\n") < HEAD_LINES + TAIL_LINES


def _find_repeats(
    entries: Sequence[TranscriptEntry], before: Sequence[TranscriptEntry]
) -> dict[int, list[TranscriptEntry]]:
    """Returns by an entry's place what tools gave back of its words, where no other place shows that."""
    calls = {one.call: one.text for one in (*before, *entries) if one.kind == "tool"}
    hidden: dict[str, list[tuple[int, str]]] = {}
    for place, one in (*((-1, one) for one in before), *enumerate(entries)):
        if one.kind == "result" and (place < 0 or not _is_whole(one.text)):
            name = "fetch" if fetches(one.name.lower(), calls.get(one.call, "")) else one.name
            hidden.setdefault(name, []).append((place, one.text))
    found: dict[int, list[TranscriptEntry]] = {}
    for name, results in hidden.items():
        for place, sentences in repeats(entries, results).items():
            parts = _parts(sentences)
            found.setdefault(place, []).extend(
                TranscriptEntry("result", entries[place].at, text, name) for text in parts
            )
    return found


def _parts(sentences: Iterable[str]) -> Iterator[str]:
    """Yields sentences, one a line, in parts that are shown whole."""
    part = ""
    for sentence in sentences:
        line = " ".join(sentence.split())[:TAIL_CHARACTERS]
        if part and not _is_whole(f"{part}\n{line}"):
            yield part
            part = ""
        part = f"{part}\n{line}" if part else line
    if part:
        yield part


def _code(text: str) -> str:
    text = " ".join(text.split())
    longest = max(map(len, _TICKS.findall(text)), default=0)
    ticks = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _escape_line(text: str) -> str:
    """Returns the text on one line, with everything escaped that Markdown or Obsidian would interpret."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


# ── what a body contains ──


class _Body:
    """The body of a segment, searched for entries in their order."""

    def __init__(self, text: str) -> None:
        self.text = text
        opening = _FIRST_HEAD.search(text)
        opened = parse_instant(opening["at"]) if opening else None
        self.opened = (opened or 0) // 1000
        self._places: dict[str, list[int]] = {}
        at = 0
        for line in text.split("\n"):
            self._places.setdefault(line.removesuffix(_FAILED), []).append(at)
            at += len(line) + 1
        self._read = 0
        self._calls: dict[str, int] = {}

    def shows(self, entry: TranscriptEntry) -> bool:
        """Checks whether the body shows the entry after those found so far; without visible text it is."""
        end = self._end_below_call(entry)
        if end < 0:
            look = sanitize_transcript_v2(_look(entry))
            end = self._find(look) if look else self._read
        if end < 0:
            return False
        self._read = max(self._read, end)
        if entry.call and entry.kind in ("tool", "subagent", "result"):
            self._calls[entry.call] = end
        return True

    def _end_below_call(self, entry: TranscriptEntry) -> int:
        """Returns the end of a result that is directly below its call, else -1."""
        call_end = self._calls.get(entry.call) if entry.kind == "result" else None
        if call_end is None:
            return -1
        excerpt = sanitize_transcript_v2(_excerpt(entry))
        return self._end(f"\n{excerpt}" if excerpt else "", call_end)

    def _find(self, look: str) -> int:
        first = look.partition("\n")[0].removesuffix(_FAILED)
        places = self._places.get(first, [])
        # Another version of the sanitizer may have written the body: its line then differs in what is redacted.
        others = {} if places else self._places
        places = places or sorted(at for line in others if is_marked(first) or is_marked(line) for at in others[line])
        for index in range(bisect_left(places, self._read), len(places)):
            if (end := self._end(look, places[index])) >= 0:
                return end
        return -1

    def _end(self, look: str, place: int) -> int:
        """Returns the end of `look` if it is at this place in whole lines, else -1."""
        end = begins(self.text, place, look)
        if end < 0:
            return -1
        end += len(_FAILED) if self.text.startswith(_FAILED, end) else 0
        return end if self.text[end : end + 1] in ("", "\n") else -1


def _look(entry: TranscriptEntry) -> str:
    """Returns how a body shows an entry, independent of its surroundings (except a result below its call)."""
    if entry.kind == "result":
        return _item(entry, ())
    if entry.kind in ("tool", "subagent"):
        return _call_line(entry)
    if entry.kind in _REPEATED:
        return f"{_make_heading(entry.kind, entry.at)}\n\n{_block(entry)}"
    return _block(entry)
