"""Extracts items listed under known headings: decisions, people, blockers, questions, next steps, and others."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.statement import Item, Kind, Speaker
from signet_sync.text.sentences import flatten, unescape

if TYPE_CHECKING:
    from signet_sync.digest.outcome import Outcome

ITEMS_PER_ARTIFACT = 400
SECTION_LINES = 4_000
ITEM_LENGTH = 280
BY_AGENT = "(agent)"  # the mark of what an agent decided

_TITLES: dict[Kind, str] = {
    "decision": "decision|decisions|key decision|key decisions|decided",
    "constraint": "constraint|constraints",
    "preference": "preference|preferences|user preferences",
    "person": "person|people|relationship|relationships|who",
    "blocker": "blocker|blockers|open blockers|risk|risks|known issue|known issues",
    "question": "question|questions|open question|open questions",
    "note": "note|notes|technical note|technical notes|gotcha|gotchas|learning|learnings",
    "tried": "tried|dead end|dead ends",
    "next": "next|next step|next steps|todo|todos|to do|to-do|to dos|to-dos|action item|action items|follow-up"
    "|follow-ups|follow up|follow ups|followups",
}
_KIND_OF: dict[str, Kind] = {title: kind for kind, titles in _TITLES.items() for title in titles.split("|")}
# Headings of what is done by now, and what it was.
_DONE_TITLES: dict[Kind, str] = {
    "next": "done|completed|implemented|shipped|erledigt|hecho|сделано|完成|完了",
    "blocker": "resolved|fixed",
}
_DONE: dict[str, Kind] = {title: kind for kind, titles in _DONE_TITLES.items() for title in titles.split("|")}

_HEADING_OR_FENCE = late(r"\n(?:#{1,6}[ \t]|[ \t]*(?:```|~~~)).*")
_NUMBERING = late(r"[\W_]*(?:\d{1,3}(?:\.\d{1,3})*[.):]?\s+)?[\W_]*")
_TITLE_END = late(r"[\W_]+$")
_AND = late(r"\s*[&/+]\s*|\s+and\s+|\s*,\s*(?:and\s+)?")
_ITEM = late(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+(?:\[([ xX])\][ \t]+)?(.*)$")
_STRUCK = late(r"~~[^~]+~~")
_WORDS = late(r"\w\W*\w\W*\w")
# What would start a heading, quote, fence, list or task inside the list item that shows the text.
_BLOCK = late(r"(?:(?:#{1,6}|[-*+]|\d{1,9}[.)]|\[[ xX]\])(?:[ \t]+|$)|>[ \t]*|~{3,}[ \t]*)*")
# Lines of our own digests about omissions, and what people write in an empty section.
_LEFT_OUT = late(r"… [\d,]{1,12} (?:more|before these)\b.{0,20}…")
_NOTHING = frozenset(
    ["none", "n/a", "nothing", "none yet", "none known", "none open", "none so far", "none identified",
     "none at the moment", "none at this time", "nothing yet", "nothing open", "nothing blocking", "tbd", "no blockers",
     "no open blockers", "no open questions", "no next steps", "no known issues", "no decisions", "not applicable",
     "无", "没有", "なし"]
)  # fmt: skip

# Backticks, two tildes, and emphasis or quotes at a word's beginning or end. The cases are distinguished after the
# first character, for speed.
_EDGES = late(r"[`~*_'\"“”](?:(?<=`)`*|(?<=~)~|(?<![`~])(?:(?<!\w.)[*_'\"“”]*|[*_'\"“”]*(?!\w)))")
_END = " \t.!?;:,…。！？；：，、"


def items(body: str, *, own: bool = False) -> tuple[Item, ...]:
    """Returns the items under known headings of a (sanitized) body, by line; text inside code fences is ignored.

    List items and paragraphs count, flattened, the first `ITEMS_PER_ARTIFACT`; those ticked or begun with struck text
    are done, and those under a heading such as *Done* or *Resolved*. Of a repeated item of one kind the last counts.
    In a digest of our `own`, a person says the decisions and constraints without a mark, and the agent all else.
    """
    found: dict[tuple[Kind, str], Item] = {}
    for kind, done, text, line in _sections(body):
        for item in _items(kind, text, line, done=done):
            same = (kind, normal(item.text))
            if len(found) == ITEMS_PER_ARTIFACT and same not in found:
                return tuple(found.values())
            found.pop(same, None)
            found[same] = item._replace(speaker=_speaker(item)) if own else item
    return tuple(found.values())


def _speaker(item: Item) -> Speaker:
    is_persons = item.kind in ("decision", "constraint", "preference") and not item.text.endswith(BY_AGENT)
    return "person" if is_persons else "agent"


@lru_cache(maxsize=8_192)  # of a statement it is asked when it is found, and when it is stored
def normal(text: str) -> str:
    """Normalises a text for comparison: ignores case, blanks, emphasis, quotes and final punctuation."""
    plain = text if text.isascii() else unicodedata.normalize("NFC", text)
    plain = " ".join(_EDGES.sub("", plain).casefold().split()).rstrip(_END)
    return (plain if plain.isascii() else unicodedata.normalize("NFC", plain)) or text.casefold()


def _sections(body: str) -> Iterator[tuple[Kind, bool, str, int]]:
    """Yields what each known heading lists, whether that is done, the text and its line.

    The text begins with the rest of the heading's line.
    """
    listed: tuple[Kind, bool] | None = None
    begin, counted, line = 0, 0, 1
    for start, end in (*_headings(body), (len(body), len(body))):
        if listed is not None:
            line += body.count("\n", counted, begin)
            counted = begin
            yield *listed, body[begin:start], line
        listed, begin = _read_heading(body[start:end]), end


def _headings(body: str) -> Iterator[tuple[int, int]]:
    """Yields start and end of each heading outside code fences."""
    fenced = False
    # The added newline lets the pattern match in the first line.
    for mark in _HEADING_OR_FENCE.finditer("\n" + body):
        if not mark[0].startswith("\n#"):
            fenced = not fenced
        elif not fenced:
            yield mark.start(), mark.end() - 1


def _read_heading(line: str) -> tuple[Kind, bool] | None:
    """Returns the kind that a heading line names, and whether it is done; None for an unknown heading."""
    title = line.lstrip("#")
    return _read_title(title) if title.startswith((" ", "\t")) and len(title) <= 60 else None


@lru_cache(maxsize=1_000)
def _read_title(title: str) -> tuple[Kind, bool] | None:
    """Returns what a heading's words name; if they name two kinds, the first."""
    begin = _NUMBERING.match(title)
    said = " ".join(_TITLE_END.sub("", title[begin.end() if begin else 0 :]).casefold().split())
    if said in _DONE:
        return _DONE[said], True
    kinds = [_KIND_OF.get(part) for part in (_AND.split(said) if said not in _KIND_OF else (said,))]
    return (kinds[0], False) if kinds[0] is not None and all(kinds) else None


def _items(kind: Kind, text: str, line: int, *, done: bool) -> Iterator[Item]:
    for begun, words, ticked in _list_entries(text, line):
        said, struck = words[: 8 * ITEM_LENGTH], _STRUCK.match(words) is not None
        said = said.replace("~~", "") if struck else said
        shown = _BLOCK.sub("", flatten(unescape(said), ITEM_LENGTH), count=1)
        if _says_something(shown):
            yield Item(kind, shown, begun, done or ticked or struck)


def _says_something(text: str) -> bool:
    if text.startswith("…") and _LEFT_OUT.fullmatch(text):
        return False
    return _WORDS.search(text) is not None and (len(text) > 30 or normal(text) not in _NOTHING)


def _list_entries(text: str, first: int) -> Iterator[tuple[int, str, bool]]:
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


def list_stated(found: Outcome) -> tuple[Item, ...]:
    """Returns what a session states, in the words that its summary has, each once, at the lines of the transcript."""
    from signet_sync.digest.summary import item_line  # slow import, for sessions that are read anew

    kept: dict[tuple[str, str], Item] = {}
    for said in found.items:
        text = flatten(unescape(item_line(said)), ITEM_LENGTH)
        if text:
            kept[said.kind, normal(text)] = Item(said.kind, text, said.line, said.rule == "done", said.who)
    return tuple(kept.values())
