"""Extracts items listed under known headings: decisions, people, blockers, questions, next steps, and others."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from signet_sync.formats.fact import Aspect, Item
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.sentences import flatten

ITEMS_PER_HEADING = 5
DONE_PER_HEADING = 10
ITEMS_PER_ARTIFACT = 60
SECTION_LINES = 120
ITEM_LENGTH = 280
SLOT_WORDS, SLOT_LENGTH = 4, 40

_TITLES: dict[Aspect, str] = {
    "decision": "decision|decisions|key decision|key decisions|decided",
    "constraint": "constraint|constraints",
    "preference": "preference|preferences|user preferences",
    "person": "person|people|relationship|relationships|who",
    "blocker": "blocker|blockers|open blockers|risk|risks|known issue|known issues",
    "question": "question|questions|open question|open questions",
    "note": "note|notes|technical note|technical notes|gotcha|gotchas|learning|learnings",
    "next": "next|next step|next steps|todo|todos|to do|to-do|to dos|to-dos|action item|action items|follow-up"
    "|follow-ups|follow up|follow ups|followups",
}
_ASPECT_OF: dict[str, Aspect] = {title: aspect for aspect, titles in _TITLES.items() for title in titles.split("|")}
# Aspects with named values, which a later value of the same name replaces. Open items end by being done instead.
_WITH_SLOTS = frozenset[Aspect](("decision", "constraint", "preference", "person", "note"))

_HEADING_OR_FENCE = late(r"\n(?:#{1,6}[ \t]|[ \t]*(?:```|~~~)).*")
_NUMBERING = late(r"[\W_]*(?:\d{1,3}(?:\.\d{1,3})*[.):]?\s+)?[\W_]*")
_TITLE_END = late(r"[\W_]+$")
_AND = late(r"\s*[&/+]\s*|\s+and\s+|\s*,\s*(?:and\s+)?")
_ITEM = late(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+(?:\[([ xX])\][ \t]+)?(.*)$")
_STRUCK = late(r"~~(?!~)([^~]+)~~")
_WORDS = late(r"\w\W*\w\W*\w")
# What would start a heading, quote, fence, list or task inside the list item that shows the text.
_BLOCK = late(r"(?:(?:#{1,6}|[-*+]|\d{1,9}[.)]|\[[ xX]\])(?:[ \t]+|$)|>[ \t]*|~{3,}[ \t]*)*")
# Lines of our own digests about omissions, and what people write in an empty section.
_LEFT_OUT = late(r"… [\d,]{1,12} (?:more|before these)\b.{0,20}…")
_NOTHING = frozenset(
    ["none", "n/a", "nothing", "none yet", "none known", "none identified", "none at this time", "nothing yet", "tbd",
     "no blockers", "no open questions", "no known issues", "not applicable", "无", "没有", "なし"]
)  # fmt: skip

# Backticks, two tildes, and emphasis or quotes at a word's beginning or end. The cases are distinguished after the
# first character, for speed.
_EDGES = late(r"[`~*_'\"“”](?:(?<=`)`*|(?<=~)~|(?<![`~])(?:(?<!\w.)[*_'\"“”]*|[*_'\"“”]*(?!\w)))")
_END = " \t.!?;:,…。！？；：，、"
_SLOT = late(r"([^:：]{1,60}+)(?::\s|：)\s*+\S")
_NO_NAME = late(r"[.,;!?()\[\]{}<>|/\\=#@…。，；！？]|\d$")
# Words that label a remark: two remarks with the same label are two items.
_LABELS = frozenset(
    ["add", "added", "alternative", "alternatives", "answer", "background", "because", "build", "caveat", "cause",
     "changed", "chore", "ci", "cons", "context", "docs", "done", "example", "feat", "file", "fix", "fixed", "fixme",
     "hint", "http", "https", "idea", "impact", "important", "moved", "option", "perf", "problem", "pros", "rationale",
     "re", "reason", "refactor", "remark", "removed", "result", "revert", "root cause", "see", "see also", "solution",
     "style", "summary", "test", "tests", "tip", "update", "warning", "why", "wip",
     "user", "assistant", "human", "system", "tool", "model", "agent", "q", "a"]
)  # fmt: skip


def items(body: str) -> tuple[Item, ...]:
    """Returns the items under known headings of a (sanitized) body, by line; text inside code fences is ignored.

    List items and paragraphs count, flattened, the first few of each heading; ticked and struck ones are done. A
    repeated item of one aspect counts at its last occurrence.
    """
    found: dict[tuple[Aspect, str], Item] = {}
    for aspect, text, line in _sections(body):
        kept = {True: DONE_PER_HEADING, False: ITEMS_PER_HEADING}
        for item in _items(aspect, text, line, kept):
            if not any(kept.values()) or len(found) == ITEMS_PER_ARTIFACT:
                break
            if kept[item.done]:
                kept[item.done] -= 1
                same = (aspect, normal(item.text))
                found.pop(same, None)
                found[same] = item
    return _without_labels(list(found.values()))


def normal(text: str) -> str:
    """Normalises a text for comparison: ignores case, blanks, emphasis, quotes and final punctuation."""
    plain = text if text.isascii() else unicodedata.normalize("NFC", text)
    plain = " ".join(_bare(plain).casefold().split()).rstrip(_END)
    return (plain if plain.isascii() else unicodedata.normalize("NFC", plain)) or text.casefold()


def slot_of(text: str) -> str | None:
    """Returns the casefolded name before the colon of "Name: value"; None if the text has no such name."""
    head = text[: 2 * SLOT_LENGTH]
    found = _SLOT.match(_bare(head)) if ":" in head or "：" in head else None
    if found is None:
        return None
    name = " ".join(found[1].casefold().split())
    if not 0 < len(name) <= SLOT_LENGTH or len(name.split()) > SLOT_WORDS or _NO_NAME.search(name):
        return None
    return (
        name
        if name[0].isalnum() and any(map(str.isalpha, name)) and name not in _LABELS and name not in _ASPECT_OF
        else None
    )


def _bare(text: str) -> str:
    """Removes emphasis and quotes."""
    return _EDGES.sub("", text)


def _sections(body: str) -> Iterator[tuple[Aspect, str, int]]:
    """Yields aspect, text and line of each known heading; the text begins with the rest of the heading's line."""
    aspect: Aspect | None = None
    begin = counted = 0
    line = 1
    for start, end in (*_headings(body), (len(body), len(body))):
        if aspect is not None:
            line += body.count("\n", counted, begin)
            counted = begin
            yield aspect, body[begin:start], line
        aspect, begin = _aspect(body[start:end]), end


def _headings(body: str) -> Iterator[tuple[int, int]]:
    """Yields start and end of each heading outside code fences."""
    fenced = False
    # The added newline lets the pattern match in the first line.
    for mark in _HEADING_OR_FENCE.finditer("\n" + body):
        if not mark[0].startswith("\n#"):
            fenced = not fenced
        elif not fenced:
            yield mark.start(), mark.end() - 1


def _aspect(line: str) -> Aspect | None:
    """Returns the aspect of a heading line, None for an unknown heading."""
    title = line.lstrip("#")
    return _aspect_of(title) if title.startswith((" ", "\t")) and len(title) <= 60 else None


@lru_cache(maxsize=1_000)
def _aspect_of(title: str) -> Aspect | None:
    """Returns the aspect of a heading's words; if they name two, the first."""
    begin = _NUMBERING.match(title)
    said = " ".join(_TITLE_END.sub("", title[begin.end() if begin else 0 :]).casefold().split())
    aspects = [_ASPECT_OF.get(part) for part in (_AND.split(said) if said not in _ASPECT_OF else (said,))]
    return aspects[0] if all(aspects) else None


def _items(aspect: Aspect, text: str, line: int, kept: Mapping[bool, int]) -> Iterator[Item]:
    """Yields the items of a section; once no open one is kept any more, only those that may be done."""
    has_slots = aspect in _WITH_SLOTS
    for begun, words, ticked in _listed(text, line):
        if not (kept[False] or ticked or words.startswith("~~")):
            continue
        raw = words[: 8 * ITEM_LENGTH]
        for said, struck in _parted(raw, has_slots) if raw.startswith("~~") else ((raw, False),):
            flat = flatten(said, ITEM_LENGTH)
            block = _BLOCK.match(flat)
            shown = flat[block.end() :] if block is not None else flat
            if _says_something(shown):
                yield Item(aspect, shown, begun, ticked or struck, slot_of(shown) if has_slots else None)


def _says_something(text: str) -> bool:
    if text.startswith("…") and _LEFT_OUT.fullmatch(text):
        return False
    return _WORDS.search(text) is not None and (len(text) > 30 or normal(text) not in _NOTHING)


def _listed(text: str, first: int) -> Iterator[tuple[int, str, bool]]:
    """Yields line, words and tick of each list item and paragraph; tables, quotes and code are ignored."""
    paragraph: list[str] = []
    begun, ticked, fenced = first, False, False
    for line, raw in enumerate((*text.split("\n", SECTION_LINES)[:SECTION_LINES], ""), first):
        stripped = raw.strip()
        fence = stripped.startswith(("```", "~~~"))
        item = None if fenced or fence else _ITEM.match(raw)
        if stripped and not fence and not fenced and item is None and not stripped.startswith(("|", ">")):
            if not paragraph:
                begun, ticked = line, False
            paragraph.append(stripped)
            continue
        if paragraph:
            yield begun, " ".join(paragraph), ticked
            paragraph = []
        if fence:
            fenced = not fenced
        elif item is not None:
            begun, ticked, paragraph = line, item[1] is not None and item[1] != " ", [item[2].strip()]


def _parted(words: str, has_slots: bool) -> Iterator[tuple[str, bool]]:
    """Yields an item and whether it is struck out; in "~~Postgres~~ SQLite" the second word replaces the first."""
    struck = _STRUCK.match(words)
    if struck is None:
        yield words, False
        return
    yield struck[1], True
    rest = words[struck.end() :].lstrip(" :,;→>-–—")
    if has_slots and rest[:1].isalnum():
        yield rest, False


def _without_labels(found: list[Item]) -> tuple[Item, ...]:
    """Clears slots with several values in one artifact: such a name is only a label."""
    uses = Counter((item.aspect, item.slot) for item in found if not item.done)
    return tuple(item._replace(slot=None) if item.slot and uses[item.aspect, item.slot] > 1 else item for item in found)
