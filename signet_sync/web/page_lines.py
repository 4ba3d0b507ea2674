"""Parses a generated page into sections of lines. Pure."""

import re
from typing import NamedTuple

from signet_sync.web.markdown import Prose

_MARKER = re.compile(r"- |> (?:\[!\w+\] )?")  # of an item, and of a note that Obsidian shows as a box


class PageLine(NamedTuple):
    """A line of a section; `item`: it is an item of a list."""

    item: bool
    prose: Prose


class PageSection(NamedTuple):
    """A heading, its level (0 for lines before the first heading), and the lines below it."""

    level: int
    heading: str
    lines: list[PageLine]


def sections(text: str) -> list[PageSection]:
    """Returns a page by its headings; markers and empty lines are left out."""
    found = [PageSection(0, "", [])]
    for line in text.split("\n"):
        heading = re.fullmatch(r"(#{1,6}) +(.*)", line)
        if heading is not None:
            found.append(PageSection(len(heading[1]), heading[2].strip(), []))
        elif line.strip() and not line.startswith("<!-- signet:"):
            found[-1].lines.append(PageLine(line.startswith("- "), Prose(_without_marker(line), inline=True)))
    return [section for section in found if section.level or section.lines]


def _without_marker(line: str) -> str:
    marker = _MARKER.match(line)
    return line[marker.end() :] if marker else line
