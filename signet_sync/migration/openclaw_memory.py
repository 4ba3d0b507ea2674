"""Reads what OpenClaw remembers: the items and paragraphs of MEMORY.md, and of the daily notes in `memory/`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from textwrap import dedent
from typing import TYPE_CHECKING

from signet_sync.formats.timestamps import parse_since
from signet_sync.migration.items import Item, LeftFile
from signet_sync.migration.markdown_folder import MarkdownFile, read_files

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

# OpenClaw loads it in the person's own sessions only, never in those of groups.
_OWN = ("MEMORY.md", "memory.md")
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(?!\d)")
_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+")


def read(path: str, now_us: int) -> Iterator[Item | LeftFile]:
    """Yields what the files of a workspace say, or one file. Raises `HarnessError`, `UsageError`."""
    for found in read_files(path, "openclaw-memory", _is_memory):
        if isinstance(found, LeftFile):
            yield found
        else:
            yield from _items(found, now_us)


def _is_memory(path: str) -> bool:
    """Returns whether a path is one of these; daily notes may be in the folder that a person names."""
    return path in _OWN or path.startswith("memory/") or _DAY.match(path) is not None


def _items(source: MarkdownFile, now_us: int) -> Iterator[Item]:
    name = source.path.rpartition("/")[2]
    day = _DAY.match(name)
    at_us = (parse_since(day[1]) if day else None) or source.changed_us
    is_own = source.path in _OWN
    account = source.path if is_own else "memory/"
    for text in pieces(source.body):
        yield Item(
            account,
            f"{source.path}\n{text}",
            text,
            min(max(at_us, 0), now_us),
            tags=("openclaw",),
            private=is_own,
            name=source.path,
        )


def pieces(body: str) -> list[str]:
    """Returns list items with what is below them, and paragraphs; before each the heading or lead-in above it.

    Code, tables and quotes belong to what is above them.
    """
    lines = body.split("\n")
    tokens = _parser().parse(body)
    found: list[str] = []
    label = lead = ""
    follows = False
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            label, lead, follows = _label(tokens[place + 1].content, is_title=token.tag == "h1"), "", False
        elif token.map is not None and token.type == "list_item_open" and token.level == 1:
            found.append(_labelled(lead or label, _item(lines[slice(*token.map)])))
            follows = True
        elif token.map is not None and token.level == 0 and token.type in _BLOCKS:
            text = "\n".join(lines[slice(*token.map)]).strip()
            is_lead = text.endswith(":") and "\n" not in text and _next_is_list(token.map[1], lines)
            lead = text.rstrip(":") if is_lead else ""
            if text.startswith("<!--") or is_lead:
                continue
            if follows and token.type != "paragraph_open":
                found[-1] += f"\n{text}"
            else:
                found.append(_labelled(label, text))
            follows = True
    return found


_BLOCKS = ("paragraph_open", "fence", "code_block", "blockquote_open", "table_open", "html_block")


def _next_is_list(line: int, lines: list[str]) -> bool:
    return _MARKER.match(next((text for text in lines[line:] if text.strip()), "")) is not None


def _item(lines: list[str]) -> str:
    first, rest = _MARKER.sub("", lines[0], count=1), dedent("\n".join(lines[1:]))
    return f"{first}\n{rest}".strip()


def _label(heading: str, *, is_title: bool) -> str:
    """Returns a heading that says what is below it: no title of the file, no date."""
    return heading.strip().rstrip(":") if not is_title and any(map(str.isalpha, heading)) else ""


def _labelled(label: str, text: str) -> str:
    return f"{label}: {text}" if label and text else text


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"maxNesting": 20}).enable("table").disable("inline")
