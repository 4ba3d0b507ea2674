"""Reads a message's Markdown as passages: paragraphs, list items and table rows, each with the label above it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from signet_sync.digest.labels import label_of
from signet_sync.formats.lazy_pattern import late

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

PASSAGES = 300
_LONGEST = 40_000

_MARKDOWN = late(r"[*_#`|~>\[]|^[^\S\n]*(?:[-+]|\d+[.)])\s", 8)
_BULLET = late(r"^[ \t]*[・•‣◦▪●○–—·✅✔☑✓⛔🚫❌✗✘⬜☐🔲][️]?[ \t]*(?=\S)", 8)
_BOX = late(r"^\[([ xX])\][ \t]+")
_RUN_IN = late(r"^([^:：\n]{2,60}?)\s*(?:[:：]|\s[–—])\s*(?=\S)")
_INLINE = late(r"[*_`~<\[\\]")
_SPAN = late(r"(`+)([^`\n]{1,2000})\1(?!`)")
_STRONG = late(r"\s*(\*\*|__)(?=\S)(.{1,200}?)\1", 16)
_LEFT_OUT = late(r"~~.{1,2000}?~~|<(?!https?:|mailto:)/?[a-zA-Z!][^<>\n]{0,300}>", 16)
_LINK = late(r"!?\[([^\[\]\n]{0,500})\]\([^()\n]{0,1000}\)")
_EMPHASIS = late(
    r"\*\*+|(?<![\w*])\*(?=\S)|(?<=\S)\*(?![\w*])|(?<!\w)_{1,3}(?=\w)|(?<=\S)_{1,3}(?!\w)|\\(?=[!-/:-@\[-`{-~])"
)
_EDGE = " \t:：.*_#-–—"


class Passage(NamedTuple):
    """A paragraph, list item or heading as plain text on one line.

    `label` is the heading, bold line or lead-in above it, or the known label before its own colon; `box` is a to-do's
    mark (`x`, or a blank), `depth` counts the lists around an item; a table's row is its first cell.
    """

    text: str
    line: int
    form: Literal["paragraph", "item", "row", "heading"]
    label: str = ""
    box: str = ""
    depth: int = 0


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": 20}).enable("table").disable("inline")


def passages(text: str) -> Sequence[Passage]:
    """Returns the passages of a message in order, without code, quotes and HTML. At most `PASSAGES`."""
    return _passages(text[:_LONGEST])


@lru_cache(maxsize=32)
def _passages(text: str) -> Sequence[Passage]:
    if _BULLET.search(text):
        text = _BULLET.sub("- ", text)
    if not _MARKDOWN.search(text):
        return list(_plain(text))[:PASSAGES]
    reader = _Reader()
    reader.read(_parser().parse(text))
    return reader.found


def _plain(text: str) -> list[Passage]:
    reader, line = _Reader(), 0
    for block in text.split("\n\n"):
        if said := " ".join(block.split()):
            reader.paragraph(said, "", line + len(block) - len(block.lstrip("\n")), lead=said.endswith((":", "：")))
        line += block.count("\n") + 2
    return reader.found


class _Reader:
    """Reads the tokens and keeps the label that holds for what follows."""

    def __init__(self) -> None:
        self.found: list[Passage] = []
        self._heading = self._label = ""
        self._lead_in = False  # the label is a sentence before a list, and ends with the list

    def read(self, tokens: list[Token]) -> None:
        depth = quote = 0
        parents: list[str] = []
        for place, token in enumerate(tokens):
            kind = token.type
            if kind in ("blockquote_open", "blockquote_close"):
                quote += 1 if kind == "blockquote_open" else -1
            elif kind in ("bullet_list_open", "ordered_list_open"):
                depth += 1
                parents.append("")
            elif kind in ("bullet_list_close", "ordered_list_close"):
                depth -= 1
                parents.pop()
                if not depth:
                    self._label, self._lead_in = "" if self._lead_in else self._label, False
            elif kind == "inline" and not quote and len(self.found) < PASSAGES:
                opened = tokens[place - 1].type
                said, strong = _inline(token.content)
                line = token.map[0] if token.map else 0
                if opened == "heading_open":
                    self._heading, self._label, self._lead_in = said.strip(_EDGE), "", False
                    self._say(self._heading, line, "heading")
                elif opened == "td_open":
                    if tokens[place - 2].type == "tr_open":  # the first cell names the row
                        self._say(said, line, "row")
                elif opened != "th_open" and depth:
                    self._item(said, strong, line, depth, parents)
                elif opened != "th_open":
                    after = tokens[place + 2].type if place + 2 < len(tokens) else ""
                    lead = after in ("bullet_list_open", "ordered_list_open") or said.endswith((":", "："))
                    self.paragraph(said, strong, line, lead=lead)

    def paragraph(self, said: str, strong: str, line: int, *, lead: bool) -> None:
        """Reads a paragraph; a bold line, or one that leads to a list, labels what follows."""
        if not said:
            return
        if (strong and strong.strip(_EDGE) == said.strip(_EDGE) and len(said) <= 90) or (
            lead and len(said) <= 60 and (said.endswith((":", "：")) or label_of(said))
        ):
            self._label, self._lead_in = said.strip(_EDGE), not strong
            return
        own, rest = _own_label(said, strong)
        if lead and said.endswith((":", "：")):
            self._say(said, line, "paragraph", own)
            self._label, self._lead_in = own or said.strip(_EDGE)[-90:], True
            return
        if own and not rest:
            self._label, self._lead_in = own, False
            return
        if self._lead_in:
            self._label, self._lead_in = "", False
        self._say(rest if own else said, line, "paragraph", own)

    def _item(self, said: str, strong: str, line: int, depth: int, parents: list[str]) -> None:
        box = _BOX.match(said)
        said = said[box.end() :] if box else said
        own, rest = _own_label(said, strong)
        known = own if own and label_of(own) else ""
        if known and not rest:
            parents[-1] = known
            return
        above = next((one for one in reversed(parents[:-1]) if one), "")
        if depth == 1:
            parents[-1] = ""
        self._say(rest if known else said, line, "item", known or above, box[1].lower() if box else "", depth)

    def _say(
        self, text: str, line: int, form: Literal["paragraph", "item", "row", "heading"], label: str = "",
        box: str = "", depth: int = 0,
    ) -> None:  # fmt: skip
        if any(map(str.isalnum, text)):
            self.found.append(Passage(text.strip(), line, form, label or self._label or self._heading, box, depth))


def _own_label(text: str, strong: str) -> tuple[str, str]:
    """Splits a text into its own label and the rest; only bold words and known labels count."""
    if strong and text.startswith(strong) and len(strong) <= 60:
        rest = text[len(strong) :].lstrip()
        if strong.endswith((":", "：")) or rest.startswith((":", "：")):
            return strong.strip(_EDGE), rest.lstrip(":：–—- ")
    run_in = _RUN_IN.match(text)
    if run_in and label_of(run_in[1]):
        return run_in[1].strip(_EDGE), text[run_in.end() :]
    return "", text


def _inline(content: str) -> tuple[str, str]:
    """Returns a line of Markdown as plain text, and its leading bold words; struck text is left out."""
    if not _INLINE.search(content):
        return " ".join(content.split()), ""
    bold = _STRONG.match(content)
    parts = _SPAN.split(content)  # text and code by turns
    parts[::3] = [_EMPHASIS.sub("", _LINK.sub(r"\1", _LEFT_OUT.sub("", text))) for text in parts[::3]]
    del parts[1::3]  # the ticks of code
    strong = _inline(bold[2])[0] if bold else ""
    return " ".join("".join(parts).split()), strong
