"""Reads what OpenClaw remembers: the items and paragraphs of MEMORY.md, and of the daily notes in `memory/`."""

import re
from collections.abc import Iterator
from itertools import islice
from textwrap import dedent
from typing import NamedTuple

from signet_sync.formats.timestamps import parse_since
from signet_sync.migration.items import NO_STATEMENT, Item, statement, states
from signet_sync.migration.markdown_folder import parser, read_files

# OpenClaw loads it in the person's own sessions only, never in those of groups.
_OWN = ("MEMORY.md", "memory.md")
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)(?!\d)")
_MARKER = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+")
_SPOKEN = re.compile(r"^(?:user|assistant): ", re.MULTILINE)
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
        for piece in pieces(found.body):
            account = found.path if is_own else "memory/"
            # What was kept on purpose may be brief.
            empty = not states(statement(piece.text), 2 if is_own else 3) or (piece.spoken and not is_own)
            left = NO_STATEMENT if empty else ""
            yield Item(account, piece.whole, at_us, tags=("openclaw",), private=is_own, left=left)


def _is_memory(path: str) -> bool:
    """Returns whether a path is one of these; daily notes may be in the folder that a person names."""
    return path in _OWN or path.startswith("memory/") or _DAY.match(path) is not None


class NotePiece(NamedTuple):
    """A list item or paragraph of a note, the heading or lead-in above it, and whether a conversation is copied."""

    label: str
    text: str
    spoken: bool = False

    @property
    def whole(self) -> str:
        """Returns the text below its label."""
        return f"{self.label}: {self.text}" if self.label and self.text else self.text


def pieces(body: str) -> list[NotePiece]:
    """Returns list items with what is below them, and paragraphs. Code and quotes belong to what is above them.

    Tables are left out. From a line such as `user: …` to the next heading, a conversation is copied.
    """
    lines = body.split("\n")
    tokens = parser().parse(body)
    found: list[NotePiece] = []
    label = lead = ""
    follows = spoken = False
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = tokens[place + 1].content.strip().rstrip(":")
            says = token.tag != "h1" and any(map(str.isalpha, heading))  # no title of the file, no date
            label, lead, follows, spoken = heading if says else "", "", False, False
        elif token.map is not None and token.type == "list_item_open" and token.level == 1:
            first, _, below = "\n".join(lines[slice(*token.map)]).partition("\n")
            text = f"{_MARKER.sub('', first, count=1)}\n{dedent(below)}".strip()
            spoken = spoken or _SPOKEN.search(text) is not None
            found.append(NotePiece(lead or label, text, spoken))
            follows = True
        elif token.map is not None and token.level == 0 and token.type in _BLOCKS:
            text = "\n".join(lines[slice(*token.map)]).strip()
            after = next((line for line in islice(lines, token.map[1], None) if line.strip()), "")
            is_lead = text.endswith(":") and "\n" not in text and _MARKER.match(after) is not None
            lead = text.rstrip(":") if is_lead else ""
            if text.startswith("<!--") or is_lead:
                continue
            spoken = spoken or _SPOKEN.search(text) is not None
            if follows and token.type != "paragraph_open":
                found[-1] = found[-1]._replace(text=f"{found[-1].text}\n{text}")
            else:
                found.append(NotePiece(label, text, spoken))
            follows = True
    return found
