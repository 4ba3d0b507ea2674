"""Parses Markdown into values for a template: blocks, lines with their numbers, spans; pure, never markup itself.

CommonMark's structure without HTML: a file can only choose among a few shapes, and the template writes all tags. Each
line is kept, so that it can be linked to: a span never extends over the end of its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

# A longer line is shown without markup.
MARKED_UP = 2_000
_DEEPEST = 6
_COLUMNS = 30

SpanKind = Literal["text", "strong", "em", "code", "link", "image", "handle"]
BlockKind = Literal["paragraph", "heading", "quote", "list", "code", "table", "rule", "tool"]


class MarkdownSpan(NamedTuple):
    """A piece of a line; `target` is the destination of a link or image as written, or the id of a handle."""

    kind: SpanKind
    text: str
    target: str = ""


class MarkdownLine(NamedTuple):
    """One line of a file, counted from 1."""

    number: int
    spans: tuple[MarkdownSpan, ...]


class MarkdownItem(NamedTuple):
    """An item of a list: its level, its marker, its lines."""

    level: int
    marker: str
    lines: tuple[MarkdownLine, ...]


class MarkdownRow(NamedTuple):
    """A row of a table."""

    number: int
    cells: tuple[tuple[MarkdownSpan, ...], ...]


class ToolCallBlock(NamedTuple):
    """A call of a tool: its line, name and arguments, and whether it failed."""

    number: int
    name: str
    detail: tuple[MarkdownSpan, ...]
    failed: bool


class MarkdownBlock(NamedTuple):
    """Lines that belong together. `label` is a code block's language; `level` a heading's.

    A list has `items`, a table `rows` (the first is its header), a tool its `call`, with its output as `lines`.
    """

    kind: BlockKind
    lines: tuple[MarkdownLine, ...] = ()
    level: int = 0
    label: str = ""
    items: tuple[MarkdownItem, ...] = ()
    rows: tuple[MarkdownRow, ...] = ()
    call: ToolCallBlock | None = None


Numbered = tuple[int, str]
CallOf = Callable[[str], tuple[str, str, bool] | None]

_FENCE = re.compile(r" {0,12}(?:(`{3,})[^`]*|(~{3,}).*)", re.DOTALL)
_CONTAINERS = re.compile(r"[\s>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*")
_TASK = re.compile(r"\[([ xX])\][ \t]+")
_CELL_END = re.compile(r"(?<!\\)\|")
_WIKILINK = re.compile(r"\[\[([^\[\]|]+)(?:\|([^\[\]]*))?\]\]")
_HANDLE = re.compile(r"(?<!\S)\^([a-z]-[a-z2-7]+)(?!\S)")
_SPECIAL = re.compile(r"[\\`*_\[^]")


class _Markdown(MarkdownIt):
    """Keeps links as written: the page decides which of them have a target."""

    def normalizeLink(self, url: str) -> str:
        return url

    def validateLink(self, url: str) -> bool:
        return True


def _wikilink(state: StateInline, silent: bool) -> bool:
    link = _WIKILINK.match(state.src, state.pos, state.posMax)
    if link is None:
        return False
    if not silent:
        token = state.push("wikilink", "", 0)
        token.content, token.meta = link[2] or link[1], {"target": link[1]}
    state.pos = link.end()
    return True


def _handle(state: StateInline, silent: bool) -> bool:
    found = _HANDLE.match(state.src, state.pos, state.posMax)
    if found is None:
        return False
    if not silent:
        token = state.push("handle", "", 0)
        token.content, token.meta = found[0], {"target": found[1]}
    state.pos = found.end()
    return True


_markdown = _Markdown("zero").enable(
    ["blockquote", "fence", "heading", "hr", "list", "table", "backticks", "emphasis", "escape", "image", "link"]
)
_markdown.inline.ruler.before("link", "wikilink", _wikilink)
_markdown.inline.ruler.before("link", "handle", _handle)


def blocks(lines: Sequence[Numbered], *, fence: str = "", call_of: CallOf | None = None) -> list[MarkdownBlock]:
    """Returns the blocks of some lines. `fence` was opened before them; `call_of` parses lines that call a tool."""
    lines = [(0, fence), *lines] if fence else lines
    tokens: list[Token] = []
    _markdown.block.parse("\n".join(raw for _, raw in lines) + "\n", _markdown, {}, tokens)
    return _BlockReader(lines, call_of).read(tokens)


def spans(text: str) -> tuple[MarkdownSpan, ...]:
    """Returns the pieces of a line."""
    if len(text) > MARKED_UP or not _SPECIAL.search(text):
        return (MarkdownSpan("text", text),) if text else ()
    tokens: list[Token] = []
    _markdown.inline.parse(text, _markdown, {}, tokens)
    return tuple(_joined(_spans(tokens)))


def open_fence(lines: Iterable[str]) -> str:
    """Returns the fence of the code block that some lines leave open; empty if there is none."""
    fence = ""
    for raw in lines:
        if fence:
            bare = raw.strip()
            fence = "" if bare.startswith(fence) and not bare.strip(fence[0]) else fence
        elif mark := _FENCE.fullmatch(raw):
            fence = mark[1] or mark[2]
    return fence


def numbered(text: str, first: int) -> list[Numbered]:
    """Returns the lines of a text with their numbers."""
    return list(enumerate(text.split("\n"), first))


def targets(shown: Iterable[MarkdownBlock]) -> set[str]:
    """Returns the destinations of the links in some blocks."""
    every: list[tuple[MarkdownSpan, ...]] = []
    for block in shown:
        every += [line.spans for line in block.lines]
        every += [line.spans for item in block.items for line in item.lines]
        every += [cell for row in block.rows for cell in row.cells]
    return {span.target for line in every for span in line if span.kind == "link"}


# ── blocks ──


class _BlockReader:
    """Builds blocks from tokens and lines."""

    def __init__(self, lines: Sequence[Numbered], call_of: CallOf | None) -> None:
        self._lines = lines
        self._call_of = call_of
        self._found: list[MarkdownBlock] = []
        self._items: list[MarkdownItem] = []  # of the current list
        self._shown = 0  # how many lines are in blocks or between them

    def read(self, tokens: Sequence[Token]) -> list[MarkdownBlock]:
        """Returns the blocks in order."""
        lists = quotes = 0
        marker = ""
        for at, token in enumerate(tokens):
            kind, (start, end) = token.type, token.map or (0, 0)
            if kind in ("fence", "hr", "heading_open", "table_open", "paragraph_open"):
                self._plain(start)
                self._shown = end
            if kind in ("bullet_list_open", "ordered_list_open", "bullet_list_close", "ordered_list_close"):
                lists += token.nesting
            elif kind in ("blockquote_open", "blockquote_close"):
                quotes += token.nesting
            elif kind == "list_item_open":
                marker = token.info + token.markup if token.info else "•"
            elif kind == "fence":
                self._fence(token, start)
            elif kind == "hr":
                self._add(MarkdownBlock("rule", (MarkdownLine(self._lines[start][0], ()),)))
            elif kind == "heading_open":
                words = MarkdownLine(self._lines[start][0], spans(tokens[at + 1].content))
                self._add(MarkdownBlock("heading", (words,), level=int(token.tag[1])))
            elif kind == "table_open":
                self._add(
                    MarkdownBlock("table", rows=tuple(self._row(row) for row in range(start, end) if row != start + 1))
                )
            elif kind == "paragraph_open":
                held = tokens[at + 1].content.split("\n")
                # Blanks that only Python treats as such may be stripped from the beginning, with their lines.
                start = next(line for line in range(start, end) if held[0] in self._lines[line][1])
                if lists == 1 and not quotes and marker and self._call(start):
                    held, start = held[1:], start + 1
                self._paragraph(held, start, lists, quotes, marker)
                marker = ""
        self._plain(len(self._lines))
        self._add()
        return self._found

    def _add(self, *following: MarkdownBlock) -> None:
        """Ends the current list, and adds the following blocks."""
        if self._items:
            self._found.append(MarkdownBlock("list", items=tuple(self._items)))
            self._items = []
        self._found += following

    def _plain(self, until: int) -> None:
        """Adds lines without a token as they are: nested too deeply, or only markers of lists and quotes."""
        for number, raw in self._lines[self._shown : until]:
            if raw.strip(" \t>*+-"):
                self._add(MarkdownBlock("paragraph", (MarkdownLine(number, (MarkdownSpan("text", raw),)),)))

    def _paragraph(self, held: Sequence[str], start: int, lists: int, quotes: int, marker: str) -> None:
        task = _TASK.match(held[0]) if marker and held else None
        if task:
            held, marker = [held[0][task.end() :], *held[1:]], "☐" if task[1] == " " else "☑"
        lines = tuple(MarkdownLine(self._lines[start + at][0], spans(words)) for at, words in enumerate(held))
        if not lines:
            return
        if lists:
            self._items.append(MarkdownItem(min(lists - 1, _DEEPEST), marker, lines))
        else:
            self._add(MarkdownBlock("quote" if quotes else "paragraph", lines))

    def _fence(self, token: Token, start: int) -> None:
        code = token.content.split("\n")[:-1]
        lines = tuple(
            MarkdownLine(self._lines[start + at][0], (MarkdownSpan("text", raw),)) for at, raw in enumerate(code, 1)
        )
        last = self._found[-1].call if self._found and not self._items else None
        if last and last.number == self._lines[start - 1][0] and token.level and not token.info:
            self._found[-1] = self._found[-1]._replace(lines=lines)
        else:
            self._add(MarkdownBlock("code", lines, label=token.info.strip()))

    def _call(self, line: int) -> bool:
        """Returns whether a line calls a tool; if so adds it as a block of its own."""
        number, raw = self._lines[line]
        called = self._call_of(raw) if self._call_of is not None and raw.startswith("- ") else None
        if called is None:
            return False
        _, detail, failed = called
        shown = spans(detail) if "`" in detail else (MarkdownSpan("code", detail),) if detail else ()
        self._add(MarkdownBlock("tool", call=ToolCallBlock(number, raw.split("`", 2)[1], shown, failed)))
        return True

    def _row(self, line: int) -> MarkdownRow:
        """Returns a row with all its cells: tokens leave out cells without a header."""
        number, raw = self._lines[line]
        inner = _CONTAINERS.sub("", raw, count=1).strip().removeprefix("|")
        inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
        return MarkdownRow(number, tuple(spans(cell.strip()) for cell in _CELL_END.split(inner, _COLUMNS)))


# ── spans ──


def _spans(tokens: Iterable[Token]) -> Iterator[MarkdownSpan]:
    strong = emphasis = 0
    link: str | None = None
    words = ""
    for token in tokens:
        kind = token.type
        if kind in ("strong_open", "strong_close"):
            strong += token.nesting
        elif kind in ("em_open", "em_close"):
            emphasis += token.nesting
        elif kind == "link_open":
            link, words = str(token.attrs["href"]), ""
        elif kind == "link_close":
            yield MarkdownSpan("link", words or link or "", link or "")
            link = None
        elif link is not None:
            words += token.content
        elif kind == "wikilink":
            yield MarkdownSpan("link", token.content, token.meta["target"])
        elif kind == "handle":
            yield MarkdownSpan("handle", token.content, token.meta["target"])
        elif kind == "image":
            target = str(token.attrs["src"])
            yield MarkdownSpan("image", token.content or target, target)
        elif token.content:
            within: SpanKind = "strong" if strong else "em" if emphasis else "text"
            yield MarkdownSpan("code" if kind == "code_inline" else within, token.content)


def _joined(found: Iterable[MarkdownSpan]) -> Iterator[MarkdownSpan]:
    """Joins neighbouring pieces of the same kind."""
    held = MarkdownSpan("text", "")
    for span in found:
        if span.kind == held.kind and span.kind in ("text", "strong", "em"):
            held = MarkdownSpan(held.kind, held.text + span.text)
            continue
        if held.text:
            yield held
        held = span
    if held.text:
        yield held
