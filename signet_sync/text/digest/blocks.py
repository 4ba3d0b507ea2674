"""Reads a message's Markdown as passages: paragraphs, list items and table rows, each with the label above it."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.digest.cues import Cues

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

Mark = Literal["", "done", "open", "blocked", "failed"]
# Readers use no more than this many.
PASSAGES, CELLS = 400, 24

_BOX = late(r"^\[([ xX])\][ \t]+")
_SIGN = late(r"^[\W_]*?([✅✔☑✓⛔🚫🔴🛑⏸⏳🔒❌✗✘⬜☐🔲⚠🟡🟢🔍])[️]?[\W_]*\s*")
_SIGNS: dict[str, Mark] = {
    **dict.fromkeys("✅✔☑✓🟢", "done"), **dict.fromkeys("⛔🚫🔴🛑⏸🔒⏳", "blocked"), **dict.fromkeys("⬜☐🔲🟡", "open"),
    **dict.fromkeys("❌✗✘", "failed"),
}  # fmt: skip
_EMOJI = late("[\u2600-\u27bf\u2b00-\u2bff\ufe0f\U0001f000-\U0001faff]+")
# An answer enclosed in a tag: "<summary>…</summary>".
_WRAPPED = late(r"\A\s*<[a-z][\w-]{0,30}>|</[a-z][\w-]{0,30}>\s*\Z")
_MARKDOWN = late(r"[*_#`|~>\[]|^[^\S\n]*(?:[-+]|\d+[.)])\s", re.MULTILINE)
_EAST_BULLET = late(r"^[ \t]*[・•‣◦▪●○–—·][ \t]*(?=\S)", re.MULTILINE)
# Lines that each begin with a check mark are a list.
_SIGNED = late(r"^(?=[✅✔☑✓⛔🚫🔴🛑⏸⏳🔒❌✗✘⬜☐🔲🟡🟢][️]? .*\n)|(?<=\n)(?=[✅✔☑✓⛔🚫🔴🛑⏸⏳🔒❌✗✘⬜☐🔲🟡🟢][️]? )")
_RUN_IN = late(r"^([^:：\n]{2,60}?)\s*[:：]\s+(?=\S)|^([^:：\n]{1,30}?)：(?=\S)")
_DASHED = late(r"^([^–—\n]{2,40}?)\s+[–—-]{1,2}\s+(?=\S)")


class MessagePassage(NamedTuple):
    """A paragraph, list item or table row as plain text on one line.

    `line` counts the message's lines from 0; `label` is the heading, bold line or lead-in above it (or the words before
    its own colon if they are a known label), else empty; `heading` is the nearest heading. `mark` is its check mark,
    `struck`: it is crossed out, `strong` are the bold words at its beginning, `depth` is that of a list item.
    """

    text: str
    line: int
    form: Literal["paragraph", "item", "row", "heading"]
    label: str = ""
    heading: str = ""
    mark: Mark = ""
    struck: bool = False
    strong: str = ""
    depth: int = 0


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": 20}).enable(["table", "strikethrough"])


def passages(text: str, cues: Cues) -> list[MessagePassage]:
    """Returns the passages of a message in order, without code, quotes and HTML. At most `PASSAGES`."""
    text = _SIGNED.sub("- ", _EAST_BULLET.sub("- ", _WRAPPED.sub("", text)))
    if not _MARKDOWN.search(text):
        return _plain(text, cues)
    return _PassageReader(cues).read(_parser().parse(text))


def _plain(text: str, cues: Cues) -> list[MessagePassage]:
    reader = _PassageReader(cues)
    line = 0
    for block in text.split("\n\n"):
        said = " ".join(block.split())
        if said:
            skipped = len(block) - len(block.lstrip("\n"))
            reader.paragraph([said], "", line + skipped, said.endswith((":", "：")))
        line += block.count("\n") + 2
        if len(reader.found) >= PASSAGES:
            break
    return reader.found


class _PassageReader:
    """Reads the tokens and keeps the current label."""

    def __init__(self, cues: Cues) -> None:
        self.found: list[MessagePassage] = []
        self._cues = cues
        self._heading = ""
        self._label = ""  # of a bold line or lead-in; applies to the list or paragraphs after it
        self._lead_in = False  # the label is a sentence before a list: it ends with the list
        self._after_list = False

    def read(self, tokens: list[Token]) -> list[MessagePassage]:
        lists: list[str] = []
        quote = 0
        item_label: list[str] = []
        for place, token in enumerate(tokens):
            if len(self.found) >= PASSAGES:
                break
            kind = token.type
            if kind == "blockquote_open":
                quote += 1
            elif kind == "blockquote_close":
                quote -= 1
            elif kind in ("bullet_list_open", "ordered_list_open"):
                lists.append(kind)
                item_label.append("")
            elif kind in ("bullet_list_close", "ordered_list_close"):
                lists.pop()
                item_label.pop()
                if not lists:
                    # A sentence after a list does not belong to it.
                    self._label, self._lead_in, self._after_list = "", False, True
            elif kind == "inline" and not quote:
                opened = tokens[place - 1].type
                line = token.map[0] if token.map else 0
                if opened == "heading_open":
                    said, _, _ = _inline(token)
                    self._heading, self._label, self._lead_in = _bare(" ".join(said)), "", False
                    self._after_list = False
                    self.found.append(MessagePassage(self._heading, line, "heading"))
                elif opened in ("th_open", "td_open"):
                    continue
                elif lists:
                    self._item(token, line, len(lists), item_label)
                else:
                    said, strong, struck = _inline(token)
                    follows = any(
                        t.type in ("bullet_list_open", "ordered_list_open", "fence")
                        for t in tokens[place + 2 : place + 3]
                    )
                    if not struck:
                        self.paragraph(said, strong, line, follows)
            elif kind == "tr_open" and not quote:
                self._row(tokens, place)
        return self.found

    def paragraph(self, lines: list[str], strong: str, line: int, follows: bool) -> None:
        """Reads a paragraph; a bold line or one that ends in a colon is the label of what follows."""
        whole = " ".join(" ".join(lines).split())
        if not whole:
            return
        if strong and _bare(strong) == _bare(whole) and len(whole) <= 80:
            self._label, self._lead_in = _bare(whole), False
            return
        if len(lines) > 1 and strong and _bare(strong) == _bare(lines[0]) and len(lines[0]) <= 80:
            # A bold line, and text directly below it.
            self._label, self._lead_in = _bare(lines[0]), False
            whole = " ".join(" ".join(lines[1:]).split())
            strong = ""
        label, text = self._own_label(whole, strong)
        if follows or text.endswith((":", "：")):
            before, last = _last_sentence(text if label else whole)
            lead = _bare(last)
            if label and not before and _bare(label) == lead:
                before = ""
            if before:
                self._say(before, line, "paragraph", label or self._label, strong=strong)
            if text.endswith((":", "：")):
                self._label, self._lead_in = (label if label and not last else lead), True
                return
            if follows and len(lead) <= 40 and self._cues.kind_of(lead):
                self._label, self._lead_in = lead, True
                return
            self._say(last, line, "paragraph", label or "", strong=strong)
            self._label, self._lead_in = "", False
            return
        if self._lead_in:
            self._label, self._lead_in = "", False
        self._say(text, line, "paragraph", label or self._label, strong=strong)
        if not label and self._label and self.found and not self._cues.kind_of(self._label):
            self._label = ""

    def _item(self, token: Token, line: int, depth: int, labels: list[str]) -> None:
        said, strong, struck = _inline(token)
        text = " ".join(" ".join(said).split())
        mark: Mark = ""
        box = _BOX.match(text)
        if box:
            mark, text = ("open" if box[1] == " " else "done"), text[box.end() :]
        sign = _SIGN.match(text)
        if sign and sign[1] in _SIGNS:
            mark = mark or _SIGNS[sign[1]]
        text = _EMOJI.sub("", text).strip() if sign else text
        label, rest = self._own_label(text, strong)
        if label and self._cues.kind_of(label) and not rest.strip():
            labels[-1] = label
            return
        if text.endswith((":", "：")) and len(text) <= 60 and self._cues.kind_of(_bare(text)):
            labels[-1] = _bare(text)
            return
        above = next((one for one in reversed(labels[:-1]) if one), "") if depth > 1 else ""
        if depth == 1:
            labels[-1] = ""
        own = label if label and self._cues.kind_of(label) else ""
        self._say(rest if own else text, line, "item", own or above or self._label, mark, struck, strong, depth)

    def _row(self, tokens: list[Token], place: int) -> None:
        cells: list[str] = []
        head = False
        line = 0
        for token in tokens[place + 1 :]:
            if token.type == "tr_close" or len(cells) >= CELLS:
                break
            if token.type == "th_open":
                head = True
            elif token.type == "inline":
                said, _, _ = _inline(token)
                cells.append(" ".join(said).strip())
        line = spot[0] if (spot := tokens[place].map) else 0
        if head and cells and self._cues.kind_of(_bare(cells[0])) in ("decision", "next", "blocker", "constraint"):
            self._label, self._lead_in = _bare(cells[0]), True
        if head or not any(cells):
            return
        mark: Mark = ""
        for cell in cells:
            sign = _SIGN.match(cell + " ")
            if sign and sign[1] in _SIGNS:
                mark = _SIGNS[sign[1]]
            elif len(cell) <= 24 and (kind := self._cues.kind_of(cell)) in ("done", "next", "blocker"):
                mark = {"done": "done", "next": "open", "blocker": "blocked"}[kind]  # type: ignore[assignment]
        self._say(": ".join(filter(None, cells[:2])), line, "row", self._label, mark)

    def _own_label(self, text: str, strong: str) -> tuple[str, str]:
        """Splits a text into its own label and the rest; only bold words and known labels count."""
        if strong and text.startswith(strong) and len(strong) <= 60:
            rest = text[len(strong) :].lstrip()
            if strong.endswith((":", "：", ".")) or rest.startswith((":", "：", "–", "—", "-")):
                return _bare(strong), rest.lstrip(":：–—- ")
            if self._cues.kind_of(_bare(strong)) and rest[:1].isupper():
                return _bare(strong), rest
        for pattern in (_RUN_IN, _DASHED):
            run_in = pattern.match(text)
            if run_in:
                label = _bare(next(filter(None, run_in.groups())))
                if len(label.split()) <= 5 and self._cues.kind_of(label):
                    return label, text[run_in.end() :]
        return "", text

    def _say(
        self, text: str, line: int, form: Literal["paragraph", "item", "row"], label: str, mark: Mark = "",
        struck: bool = False, strong: str = "", depth: int = 0,
    ) -> None:  # fmt: skip
        text = text.strip()
        above = "" if form == "paragraph" and self._after_list else self._heading
        if any(c.isalnum() for c in text):
            self.found.append(
                MessagePassage(text, line, form, label or above, self._heading, mark, struck, _bare(strong), depth)
            )


def _inline(token: Token) -> tuple[list[str], str, bool]:
    """Returns an inline token's lines as plain text, its leading bold words, and whether it is all struck out."""
    lines = [""]
    strong, bold, plain_seen = "", 0, False
    struck = struck_out = 0
    for child in token.children or ():
        if child.type == "strong_open":
            bold += 1
        elif child.type == "strong_close":
            bold -= 1
        elif child.type == "s_open":
            struck += 1
        elif child.type == "s_close":
            struck -= 1
        elif child.type in ("softbreak", "hardbreak"):
            lines.append("")
        elif child.type in ("text", "code_inline"):
            if struck:
                struck_out += len(child.content)
                continue
            if bold and not plain_seen:
                strong += child.content
            elif child.content.strip(" *"):
                plain_seen = True
            mute = child.type == "code_inline" and not any(c.isalnum() for c in child.content)
            lines[-1] += f"'{child.content}'" if mute else child.content
    said = [line for line in lines if line.strip()]
    return said, " ".join(strong.split()), bool(struck_out) and not any(c.isalnum() for c in "".join(said))


def _bare(text: str) -> str:
    return _EMOJI.sub("", text).strip(" \t:：.*_#-–—").strip()


_LAST = late(r"(?<=[.!?。！？])\s*(?=\S[^.!?。！？]*[:：]?$)")


def _last_sentence(text: str) -> tuple[str, str]:
    """Splits off the last sentence of a text."""
    parts = _LAST.split(text, maxsplit=1)
    return (parts[0], parts[1]) if len(parts) == 2 else ("", text)
