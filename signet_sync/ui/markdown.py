"""Markdown as values for a template: blocks, lines with their numbers, spans; pure, linear, and never markup itself.

A subset on purpose: what a file says chooses among a few shapes, and the template alone writes tags. Lines stay lines,
so that each can be linked to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

# A longer line is shown as it stands.
MARKED_UP = 2_000
_DEEPEST = 6
_COLUMNS = 30

SpanKind = Literal["text", "strong", "em", "code", "link", "image"]
BlockKind = Literal["paragraph", "heading", "quote", "list", "code", "table", "rule", "tool"]


class Span(NamedTuple):
    """A piece of a line; of a link or image `target` is what it leads to, as it was written."""

    kind: SpanKind
    text: str
    target: str = ""


class Line(NamedTuple):
    """One line of a file, counted from 1."""

    number: int
    spans: tuple[Span, ...]


class Item(NamedTuple):
    """An item of a list: how deep it stands, what stands before it, its lines."""

    level: int
    marker: str
    lines: tuple[Line, ...]


class Row(NamedTuple):
    """A row of a table."""

    number: int
    cells: tuple[tuple[Span, ...], ...]


class Call(NamedTuple):
    """A tool that was called: its line, its name, what with, whether it failed."""

    number: int
    name: str
    detail: tuple[Span, ...]
    failed: bool


class Block(NamedTuple):
    """Lines that belong together. `label` is a code block's language; `level` a heading's.

    A list has `items`, a table `rows` (the first is its head), a tool its `call` and as `lines` what it printed.
    """

    kind: BlockKind
    lines: tuple[Line, ...] = ()
    level: int = 0
    label: str = ""
    items: tuple[Item, ...] = ()
    rows: tuple[Row, ...] = ()
    call: Call | None = None


Numbered = tuple[int, str]
CallOf = Callable[[str], tuple[str, str, bool] | None]

_FENCE = re.compile(r"( {0,12})(?:(`{3,})([^`]*)|(~{3,})(.*))", re.DOTALL)
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)", re.DOTALL)
_RULE = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})")
_QUOTE = re.compile(r" {0,3}> ?")
_ITEM = re.compile(r"([ \t]*)([-*+]|\d{1,9}[.)])[ \t]+(?:\[([ xX])\][ \t]+)?(.*)", re.DOTALL)
# No blank can belong to two parts of it: a line of a file could else keep the pattern busy for hours.
_DELIMITER = re.compile(r"[ \t]*(?:\|[ \t]*)?:?-+:?[ \t]*(?:\|[ \t]*(?::?-+:?[ \t]*)?)*")
_CELL_END = re.compile(r"(?<!\\)\|")

_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~$%=])")
# Each alternative stops at the next mark of its kind, so that a line is walked a few times at most.
_INLINE = re.compile(
    r"(?P<ticks>`{1,3})(?P<code>[^`]+)(?P=ticks)(?!`)"
    rf"|(?P<escaped>{_ESCAPED.pattern})"
    r"|\[\[(?P<wiki>[^\[\]|]+)(?:\|(?P<alias>[^\[\]]*))?\]\]"
    r"|(?P<shown>!?)\[(?P<label>[^\[\]]*)\]\((?P<target>[^()\s]*)(?:[ \t]+\"[^\"]*\")?\)"
    r"|\*\*(?=[^\s*])(?P<strong>[^*]+)(?<=\S)\*\*"
    r"|(?<![\w*])\*(?=[^\s*])(?P<em>[^*]+)(?<=\S)\*(?![\w*])"
    r"|(?<![\w_])_(?=[^\s_])(?P<under>[^_]+)(?<=\S)_(?![\w_])"
)


def blocks(lines: Sequence[Numbered], *, fence: str = "", call_of: CallOf | None = None) -> list[Block]:
    """The blocks of some lines. `fence` is one that was opened before them; `call_of` reads lines that call a tool."""
    walk = _Walk(lines, call_of)
    if fence:
        walk.code(fence, 0, "")
    while walk.here < len(lines):
        walk.step()
    return walk.found


def spans(text: str) -> tuple[Span, ...]:
    """The pieces of a line."""
    if len(text) > MARKED_UP:
        return (Span("text", text),)
    return tuple(_joined(_spans(text)))


def open_fence(lines: Iterable[str]) -> str:
    """The mark of the code block that some lines leave open; empty where they leave none."""
    fence = ""
    for raw in lines:
        if fence:
            bare = raw.strip()
            fence = "" if bare.startswith(fence) and not bare.strip(fence[0]) else fence
        elif mark := _FENCE.fullmatch(raw):
            fence = mark[2] or mark[4]
    return fence


def numbered(text: str, first: int) -> list[Numbered]:
    """The lines of a text with their numbers."""
    return list(enumerate(text.split("\n"), first))


def targets(shown: Iterable[Block]) -> set[str]:
    """What the links of some blocks lead to."""
    every: list[tuple[Span, ...]] = []
    for block in shown:
        every += [line.spans for line in block.lines]
        every += [line.spans for item in block.items for line in item.lines]
        every += [cell for row in block.rows for cell in row.cells]
    return {span.target for line in every for span in line if span.kind == "link"}


# ── blocks ──


class _Walk:
    """The lines, where we are among them, and the blocks that were found."""

    def __init__(self, lines: Sequence[Numbered], call_of: CallOf | None) -> None:
        self.lines = lines
        self.here = 0
        self.found: list[Block] = []
        self._call_of = call_of

    def step(self) -> None:
        """Takes the lines of the next block."""
        number, raw = self.lines[self.here]
        if not raw.strip():
            self.here += 1
        elif self._tool(raw) or self._fenced(raw):
            pass
        elif heading := _HEADING.fullmatch(raw):
            self.here += 1
            words = heading[2].strip().rstrip("#").rstrip()
            self.found.append(Block("heading", (Line(number, spans(words)),), level=len(heading[1])))
        elif _RULE.fullmatch(raw[:MARKED_UP]):
            self.here += 1
            self.found.append(Block("rule", (Line(number, ()),)))
        elif self._is_table():
            self._table()
        elif _QUOTE.match(raw):
            self._lines("quote", lambda text: _QUOTE.match(text) is not None)
        elif _ITEM.fullmatch(raw):
            self._list()
        else:
            self._lines("paragraph", lambda text: not self._begins(text))

    def code(self, mark: str, indent: int, label: str, call: Call | None = None) -> None:
        """Takes the lines up to the end of a code block; of a tool they are what it printed."""
        held: list[Line] = []
        while self.here < len(self.lines):
            number, raw = self.lines[self.here]
            self.here += 1
            bare = raw.strip()
            if bare.startswith(mark) and not bare.strip(mark[0]):
                break
            held.append(Line(number, (Span("text", raw[_blanks(raw, indent) :]),)))
        self.found.append(Block("tool" if call else "code", tuple(held), label=label, call=call))

    def _tool(self, raw: str) -> bool:
        said = self._call_of(raw) if self._call_of is not None and raw.startswith("- ") else None
        if said is None:
            return False
        _, detail, failed = said
        shown = spans(detail) if "`" in detail else (Span("code", detail),) if detail else ()
        call = Call(self.lines[self.here][0], raw.split("`", 2)[1], shown, failed)
        self.here += 1
        below = _FENCE.fullmatch(self.lines[self.here][1]) if self.here < len(self.lines) else None
        if below and below[1]:
            self.here += 1
            self.code(below[2] or below[4], len(below[1]), "", call)
        else:
            self.found.append(Block("tool", call=call))
        return True

    def _fenced(self, raw: str) -> bool:
        mark = _FENCE.fullmatch(raw)
        if mark is None:
            return False
        self.here += 1
        self.code(mark[2] or mark[4], len(mark[1]), (mark[3] or mark[5] or "").strip())
        return True

    def _lines(self, kind: BlockKind, goes_on: Callable[[str], bool]) -> None:
        held: list[Line] = []
        while self.here < len(self.lines):
            number, raw = self.lines[self.here]
            if not raw.strip() or (held and not goes_on(raw)):
                break
            held.append(Line(number, spans(_QUOTE.sub("", raw, count=1) if kind == "quote" else raw)))
            self.here += 1
        self.found.append(Block(kind, tuple(held)))

    def _list(self) -> None:
        items: list[tuple[Item, list[Line]]] = []  # each with the lines below its first
        while self.here < len(self.lines):
            number, raw = self.lines[self.here]
            item = None if _RULE.fullmatch(raw[:MARKED_UP]) else _ITEM.fullmatch(raw)
            if item is not None and not (self._call_of and raw.startswith("- ") and self._call_of(raw)):
                items.append((_item(number, item), []))
            elif items and raw[:2].strip() == "" and raw.strip() and not _FENCE.fullmatch(raw):
                items[-1][1].append(Line(number, spans(raw.strip())))
            elif not raw.strip() and self._next_is_item():
                pass  # a loose list is one list
            else:
                break
            self.here += 1
        every = tuple(first._replace(lines=(*first.lines, *below)) for first, below in items)
        self.found.append(Block("list", items=every))

    def _next_is_item(self) -> bool:
        after = self.lines[self.here + 1][1] if self.here + 1 < len(self.lines) else ""
        return _ITEM.fullmatch(after) is not None and not _RULE.fullmatch(after[:MARKED_UP])

    def _is_table(self) -> bool:
        if self.here + 1 >= len(self.lines):
            return False
        head, below = self.lines[self.here][1], self.lines[self.here + 1][1]
        return "|" in head and "|" in below and _DELIMITER.fullmatch(below[:MARKED_UP]) is not None

    def _table(self) -> None:
        rows: list[Row] = []
        first = self.here
        while self.here < len(self.lines) and "|" in (raw := self.lines[self.here][1]):
            if self.here != first + 1:
                rows.append(_row(self.lines[self.here][0], raw))
            self.here += 1
        self.found.append(Block("table", rows=tuple(rows)))

    def _begins(self, raw: str) -> bool:
        """Whether a line ends the paragraph above it."""
        return bool(
            _FENCE.fullmatch(raw)
            or _HEADING.fullmatch(raw)
            or _RULE.fullmatch(raw[:MARKED_UP])
            or _QUOTE.match(raw)
            or _ITEM.fullmatch(raw)
            or self._is_table()
        )


def _blanks(raw: str, most: int) -> int:
    """How many of a line's first blanks belong to the fence around it."""
    return min(len(raw) - len(raw.lstrip(" ")), most)


def _item(number: int, match: re.Match[str]) -> Item:
    marker = match[2] if match[2][0].isdigit() else "•"
    if match[3]:
        marker = "☐" if match[3] == " " else "☑"
    depth = len(match[1].replace("\t", "    ")) // 2
    return Item(min(depth, _DEEPEST), marker, (Line(number, spans(match[4])),))


def _row(number: int, raw: str) -> Row:
    inner = raw.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return Row(number, tuple(spans(cell.strip()) for cell in _CELL_END.split(inner, _COLUMNS)))


# ── spans ──


def _spans(text: str) -> Iterator[Span]:
    at = 0
    for match in _INLINE.finditer(text):
        if match.start() > at:
            yield Span("text", text[at : match.start()])
        yield from _marked_up(match)
        at = match.end()
    if at < len(text):
        yield Span("text", text[at:])


def _marked_up(match: re.Match[str]) -> Iterator[Span]:
    if match["code"] is not None:
        yield Span("code", match["code"].strip() or match["code"])
    elif match["escaped"] is not None:
        yield Span("text", match["escaped"][1:])
    elif match["wiki"] is not None:
        yield Span("link", match["alias"] or match["wiki"], match["wiki"])
    elif match["target"] is not None:
        yield Span("image" if match["shown"] else "link", match["label"] or match["target"], match["target"])
    elif match["strong"] is not None:
        yield from _within("strong", match["strong"])
    else:
        yield from _within("em", match["em"] or match["under"] or "")


def _within(kind: SpanKind, text: str) -> Iterator[Span]:
    """Words that are set off; code among them stays code."""
    paired = text.count("`") % 2 == 0
    for place, piece in enumerate(text.split("`") if paired else [text]):
        if piece:
            yield Span("code", piece) if place % 2 else Span(kind, _ESCAPED.sub(r"\1", piece))


def _joined(found: Iterable[Span]) -> Iterator[Span]:
    """Neighbouring pieces of plain text as one."""
    held = ""
    for span in found:
        if span.kind == "text":
            held += span.text
            continue
        if held:
            yield Span("text", held)
            held = ""
        yield span
    if held:
        yield Span("text", held)
