"""Reads what OpenClaw remembers: the items and paragraphs of MEMORY.md, and of the daily notes in `memory/`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import dedent

from signet_sync.formats.timestamps import parse_since
from signet_sync.migration.items import Item
from signet_sync.migration.markdown_folder import parser, read_files

# OpenClaw loads it in the person's own sessions only, never in those of groups.
_OWN = ("MEMORY.md", "memory.md")
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(?!\d)")
_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+")
_BLOCKS = ("paragraph_open", "fence", "code_block", "blockquote_open", "html_block")


def read(path: str, now_us: int) -> Iterator[Item]:
    """Yields what the files of a workspace say, or one file. Raises `HarnessError`, `UsageError`."""
    for found in read_files(path, "openclaw-memory", _is_memory):
        if isinstance(found, Item):
            yield found
            continue
        day = _DAY.match(found.path.rpartition("/")[2])
        at_us = min(max((parse_since(day[1]) if day else None) or found.changed_us, 0), now_us)
        is_own = found.path in _OWN
        for text in pieces(found.body):
            yield Item(found.path if is_own else "memory/", text, at_us, tags=("openclaw",), private=is_own)


def _is_memory(path: str) -> bool:
    """Returns whether a path is one of these; daily notes may be in the folder that a person names."""
    return path in _OWN or path.startswith("memory/") or _DAY.match(path) is not None


def pieces(body: str) -> list[str]:
    """Returns list items with what is below them, and paragraphs; before each the heading or lead-in above it.

    Code and quotes belong to what is above them; tables are left out.
    """
    lines = body.split("\n")
    tokens = parser().parse(body)
    found: list[str] = []
    label = lead = ""
    follows = False
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = tokens[place + 1].content.strip().rstrip(":")
            says = token.tag != "h1" and any(map(str.isalpha, heading))  # no title of the file, no date
            label, lead, follows = heading if says else "", "", False
        elif token.map is not None and token.type == "list_item_open" and token.level == 1:
            first, _, below = "\n".join(lines[slice(*token.map)]).partition("\n")
            text = f"{_MARKER.sub('', first, count=1)}\n{dedent(below)}".strip()
            found.append(f"{lead or label}: {text}" if (lead or label) and text else text)
            follows = True
        elif token.map is not None and token.level == 0 and token.type in _BLOCKS:
            text = "\n".join(lines[slice(*token.map)]).strip()
            after = next((line for line in lines[token.map[1] :] if line.strip()), "")
            is_lead = text.endswith(":") and "\n" not in text and _MARKER.match(after) is not None
            lead = text.rstrip(":") if is_lead else ""
            if text.startswith("<!--") or is_lead:
                continue
            if follows and token.type != "paragraph_open":
                found[-1] += f"\n{text}"
            else:
                found.append(f"{label}: {text}" if label and text else text)
            follows = True
    return found
