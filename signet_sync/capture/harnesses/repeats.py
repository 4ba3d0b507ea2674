"""Finds the words of a conversation that stand in results which its transcript does not show whole."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from signet_sync.capture.harnesses.records import TranscriptEntry
from signet_sync.digest.printed import Printed
from signet_sync.digest.sentences import IS_CJK, split
from signet_sync.formats.lazy_pattern import late

_SENTENCES, _HIDDEN = 400, 16_000_000  # the newest that are looked for; characters of results that are searched
_LINE = 2_000
_LISTED = late(r"\s*(?:[-*+•・☐]|\[[ x~]\]|\d+[.)]|#{1,6}|>|\|)\s*")
_PARTS = late(r"\s*\|\s*|(?<=[:：])[\s*]+")
_STEPS = late(r"\[[ x~]\] ")


def repeats(entries: Sequence[TranscriptEntry], hidden: Sequence[tuple[int, str]]) -> dict[int, list[str]]:
    """Returns by an entry's place the sentences of its words that stand in hidden results of earlier places.

    `hidden` has the place and the text of each, oldest first. Of the assistant's words, those that end a turn are
    looked for; words that were said before are those of whoever said them.
    """
    if not hidden:
        return {}
    room = _HIDDEN
    for first in range(len(hidden) - 1, -1, -1):
        if (room := room - len(hidden[first][1])) < 0:
            hidden = hidden[first + 1 :]
            break
    printed = Printed(text for _, text in hidden)
    said: dict[str, int] = {}
    for place in _spoken(entries):
        entry = entries[place]
        told = entry.text.split("\n") if entry.kind == "user" else _sentences(entry.text.replace("; [", "\n["))
        for sentence in told:
            said.setdefault(sentence, place)
    found: dict[int, list[str]] = {}
    for sentence, place in list(said.items())[-_SENTENCES:]:
        # A person may say much the same; what they paste is the same.
        asked = printed.holds_all if entries[place].kind == "user" else printed.holds
        if asked(sentence, bisect_left(hidden, (place, ""))):
            found.setdefault(place, []).append(sentence)
    return found


def _spoken(entries: Sequence[TranscriptEntry]) -> list[int]:
    """Returns the places of the person's words, of the assistant's that no call follows, and of its to-do lists."""
    found, ends = [], True
    for place in range(len(entries) - 1, -1, -1):
        kind = entries[place].kind
        if kind == "user" or (kind == "assistant" and ends) or (kind == "tool" and _STEPS.match(entries[place].text)):
            found.append(place)
        ends = kind == "user" or (ends and kind in ("assistant", "event", "compaction"))
    return found[::-1]


def _sentences(text: str) -> Iterator[str]:
    """Yields the sentences of words, and the short parts of lists, tables and labelled lines."""
    for line in text.split("\n"):
        listed = _LISTED.match(line[:_LINE])
        for sentence in split(line[listed.end() if listed else 0 : _LINE]):
            parts = [part for part in _PARTS.split(sentence) if len(part.split()) > 1 or IS_CJK.search(part)]
            if len(parts) > 1 or listed or parts != [sentence] or sentence.count(" ") > 2 or IS_CJK.search(sentence):
                yield from parts
