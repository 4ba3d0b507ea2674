"""Extracts items listed under known headings: decisions, people, blockers, questions, next steps, and others."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

from signet_sync.facts.subjects import NAMED, VALUED, claims, clauses
from signet_sync.facts.wording import classified, is_statement
from signet_sync.formats.fact import Aspect, Claim, Item
from signet_sync.formats.lazy_pattern import late
from signet_sync.text.sentences import flatten

ITEMS_PER_ARTIFACT = 400
SECTION_LINES = 4_000
ITEM_LENGTH = 280
SLOT_WORDS, SLOT_LENGTH = 4, 40
NEW_VALUES = 3

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
# Aspects in which a later statement replaces an earlier one: those of one group among each other, the others only by
# name. Open items end by being done instead.
_RULES = frozenset[Aspect](("decision", "constraint", "preference"))
_NAMED_ONLY = frozenset[Aspect](("person", "note"))

# Headings of what a session did.
_REPORTED_TITLES = frozenset(
    ["outcome", "outcomes", "result", "results", "done", "completed", "changes", "what changed", "what was done",
     "summary", "progress", "work done", "implemented", "fixed", "resolved", "shipped", "updates", "highlights",
     "ergebnis", "ergebnisse", "erledigt", "resultado", "hecho", "итог", "сделано", "结果", "成果", "完成", "完了"]
)  # fmt: skip

# How many of these there are is no decision.
_COUNTED = frozenset(
    """
    test tests spec specs check checks case cases file files line lines row rows error errors warning warnings commits
    """.split()
)

_Kind = TypeVar("_Kind")

_HEADING_OR_FENCE = late(r"\n(?:#{1,6}[ \t]|[ \t]*(?:```|~~~)).*")
_NUMBERING = late(r"[\W_]*(?:\d{1,3}(?:\.\d{1,3})*[.):]?\s+)?[\W_]*")
_TITLE_END = late(r"[\W_]+$")
_AND = late(r"\s*[&/+]\s*|\s+and\s+|\s*,\s*(?:and\s+)?")
_ITEM = late(r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+(?:\[([ xX])\][ \t]+)?(.*)$")
# Asked of the agent, and no part of what is to be known.
_REMEMBER = late(r"^(?:[Pp]lease,? )?[Rr]emember that (?=\S)")
_QUESTION_BEHIND = late(r"(?<=[.!?…])\s+(?=(?:[Oo]pen )?[Qq]uestions?:\s)")
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

    List items and paragraphs count, flattened, the first `ITEMS_PER_ARTIFACT`; ticked and struck ones are done. A
    repeated item of one aspect counts at its last occurrence.
    """
    found: dict[tuple[Aspect, str], Item] = {}
    for aspect, text, line in _sections(body):
        for item in _items(aspect, text, line):
            same = (aspect, normal(item.text))
            if len(found) == ITEMS_PER_ARTIFACT and same not in found:
                return _without_labels(list(found.values()))
            found.pop(same, None)
            found[same] = item
    return _without_labels(list(found.values()))


def claims_of(aspect: Aspect, text: str) -> tuple[Claim, ...]:
    """Returns what an item of an aspect claims of which subjects."""
    if aspect in _RULES:
        return claims(text, slot_of(text))
    name = slot_of(text) if aspect in _NAMED_ONLY else None
    return (Claim(f"{NAMED}{aspect}/{name}", ""),) if name is not None else ()


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


def with_new_values(found: tuple[Item, ...], body: str) -> tuple[Item, ...]:
    """Adds what was done as decisions where it says that something has another value now, and no item says it."""
    said = [normal(item.text) for item in found]
    more = [item for item in _new_values(body) if not any(normal(item.text) in one for one in said)]
    return (*found, *more[:NEW_VALUES])[:ITEMS_PER_ARTIFACT]


def _new_values(body: str) -> Iterator[Item]:
    for begun, words in _numbered_reports(body):
        for clause in clauses(words):
            if not _COUNTED.intersection(clause.casefold().split()):
                found = claims(clause)
                if any(claim.changed and claim.subject.startswith(VALUED) for claim in found):
                    yield Item("decision", flatten(clause, ITEM_LENGTH), begun, claims=found)


def reported_lines(body: str) -> Iterator[str]:
    """Yields list items and paragraphs in front of the headings, and under those of what was done."""
    return (words for _, words in _numbered_reports(body))


def _numbered_reports(body: str) -> Iterator[tuple[int, str]]:
    """Yields them with their lines."""
    for _, text, line in _under(body, _is_reported, True):
        for begun, words, _ in _listed(text, line):
            if not words.startswith("*A digest made by rules"):
                yield begun, words


def _is_reported(line: str) -> bool:
    title = line.lstrip("#")
    return line.startswith("# ") or " ".join(_TITLE_END.sub("", title).casefold().split()) in _REPORTED_TITLES


def _sections(body: str) -> Iterator[tuple[Aspect, str, int]]:
    """Yields aspect, text and line of each known heading; the text begins with the rest of the heading's line."""
    return ((aspect, text, line) for aspect, text, line in _under(body, _aspect, None) if aspect is not None)


def _under(body: str, of: Callable[[str], _Kind], first: _Kind) -> Iterator[tuple[_Kind, str, int]]:
    """Yields what `of` says of each heading, with the text below and its line; `first` stands for the beginning."""
    kind, begin, counted = first, 0, 0
    line = 1
    for start, end in (*_headings(body), (len(body), len(body))):
        if kind:
            line += body.count("\n", counted, begin)
            counted = begin
            yield kind, body[begin:start], line
        kind, begin = of(body[start:end]), end


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


def _items(aspect: Aspect, text: str, line: int) -> Iterator[Item]:
    """Yields the items of a section."""
    replaced = aspect in _RULES or aspect in _NAMED_ONLY
    for begun, words, ticked in _listed(text, line):
        raw = words[: 8 * ITEM_LENGTH]
        for said, struck in _parted(raw, replaced) if raw.startswith("~~") else ((one, False) for one in _asked(raw)):
            flat = flatten(said, ITEM_LENGTH)
            block = _BLOCK.match(flat)
            shown = _REMEMBER.sub("", flat[block.end() :] if block is not None else flat)
            kind, named, did = classified(aspect, shown)
            done = ticked or struck or did
            # What is done is not shown: it ends what was said in other words before.
            if _says_something(named) and (done or is_statement(named, kind)):
                yield Item(kind, named, begun, done, claims_of(kind, named))


def _asked(words: str) -> list[str]:
    """Splits off a question that follows in an item: "Keep the lock. Open question: for how long?"."""
    return _QUESTION_BEHIND.split(words) if "uestion:" in words else [words]


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


def _parted(words: str, replaced: bool) -> Iterator[tuple[str, bool]]:
    """Yields an item and whether it is struck out; in "~~Postgres~~ SQLite" the second word replaces the first."""
    struck = _STRUCK.match(words)
    if struck is None:
        yield words, False
        return
    yield struck[1], True
    rest = words[struck.end() :].lstrip(" :,;→>-–—")
    if replaced and rest[:1].isalnum():
        yield rest, False


def _without_labels(found: list[Item]) -> tuple[Item, ...]:
    """Clears the claims of a name with several values in one artifact: it is only a label.

    Two numbers, or a value and its change, are a contradiction instead.
    """
    named: dict[tuple[str, str], list[Item]] = {}
    for item in found:
        name = _label(item)
        if name is not None and not item.done:
            named.setdefault(name, []).append(item)
    labels = {name for name, some in named.items() if len(some) > 1 and not _is_contradiction(some)}
    return tuple(item._replace(claims=()) if item.claims and _label(item) in labels else item for item in found)


def _label(item: Item) -> tuple[str, str] | None:
    """Returns the name of an item, and its aspect if it is replaced only within it."""
    name = slot_of(item.text) if item.aspect in _RULES or item.aspect in _NAMED_ONLY else None
    return None if name is None else (item.aspect if item.aspect in _NAMED_ONLY else "", name)


def _is_contradiction(some: Sequence[Item]) -> bool:
    first = [item.claims[0] for item in some if item.claims]
    return len(some) == len(first) == 2 and (
        all(claim.value[:1].isdigit() for claim in first) or first[0].changed is not first[1].changed
    )
