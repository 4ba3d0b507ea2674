"""Parses the lines of a generated page: words, bold words, links of the vault, handles. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_PART = re.compile(
    r"\*\*(?P<bold>[^*]+)\*\*"
    r"|(?<!\S)_(?P<em>\([^_\n]+\))_(?!\S)"
    r"|\[\[(?P<path>[^\[\]|\n]+)(?:\|(?P<label>[^\[\]\n]+))?\]\]"
    r"|(?:(?<=\s)|^)\^(?P<handle>[a-z]-[a-z2-7]+)(?=\s|$)"
)
_MARK = re.compile(r"- |> (?:\[!\w+\] )?")  # of an item, and of a note that Obsidian shows as a box


class Part(NamedTuple):
    """A piece of a line: `kind` is `text`, `bold`, `em`, `link` (to `target`, a path of the vault) or `handle`."""

    kind: str
    text: str
    target: str = ""


class Line(NamedTuple):
    """A line of a section; `item`: it is an item of a list."""

    item: bool
    parts: list[Part]


class Section(NamedTuple):
    """A heading, its level (0 for lines before the first heading), and the lines below it."""

    level: int
    heading: str
    lines: list[Line]


def sections(text: str) -> list[Section]:
    """Returns a page by its headings; markers and empty lines are left out."""
    found = [Section(0, "", [])]
    for line in text.split("\n"):
        heading = re.fullmatch(r"(#{1,6}) +(.*)", line)
        if heading is not None:
            found.append(Section(len(heading[1]), heading[2].strip(), []))
        elif line.strip() and not line.startswith("<!-- signet:"):
            mark = _MARK.match(line)
            words = line[mark.end() :] if mark else line
            found[-1].lines.append(Line(line.startswith("- "), list(parts(words))))
    return [section for section in found if section.level or section.lines]


def parts(line: str) -> Iterator[Part]:
    """Yields the pieces of a line, in order."""
    end = 0
    for match in _PART.finditer(line):
        if match.start() > end:
            yield Part("text", line[end : match.start()])
        end = match.end()
        if match["bold"]:
            yield Part("bold", match["bold"])
        elif match["em"]:
            yield Part("em", match["em"])
        elif match["handle"]:
            yield Part("handle", match["handle"], match["handle"])
        else:
            yield Part("link", match["label"] or match["path"], match["path"])
    if end < len(line):
        yield Part("text", line[end:])
