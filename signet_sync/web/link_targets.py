"""Parses a generated page into sections of lines, and maps its links to views: sessions, days, entities, nodes."""

import re
from calendar import monthrange
from collections.abc import Iterable
from typing import NamedTuple

from signet_sync.formats.entity_paths import kind_of, parse_path
from signet_sync.formats.handle import HANDLE
from signet_sync.formats.paths import page_agent
from signet_sync.storage.database.connection import Database
from signet_sync.sync.store import sessions
from signet_sync.web.markdown import LinkTarget, Prose

# The end of the path of a session log page.
_DAY = re.compile(r"ledger/(\d{4})/(\d\d)/(\d\d)\.md$", re.ASCII)
_MONTH = re.compile(r"ledger/(\d{4})-(\d\d)\.md$", re.ASCII)
_MARKER = re.compile(r"^(?:- |> (?:\[!\w+\] )?)")  # of an item, and of a note that Obsidian shows as a box


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
            found[-1].lines.append(PageLine(line.startswith("- "), Prose(_MARKER.sub("", line), inline=True)))
    return [section for section in found if section.level or section.lines]


def targets(database: Database, agent_id: str, page: Iterable[PageSection]) -> dict[str, LinkTarget]:
    """Returns the target of each link and handle of a page, by its text; links without a target are left out."""
    named = {name for section in page for line in section.lines for name in line.prose.targets}
    return find_targets(database, agent_id, named)


def find_targets(database: Database, agent_id: str, named: Iterable[str]) -> dict[str, LinkTarget]:
    """Returns the same for any paths and handles.

    All other links stay text: nothing outside the workspace is looked up because a file names it, and a browser looks
    up the host of every link that it shows.
    """
    found: dict[str, LinkTarget] = {}
    named = set(named)
    artifacts = sessions.find_of_paths(database, agent_id, [name for name in named if name.startswith("memory/")])
    for name in named:
        ref = artifacts.get(name)
        if ref is None:
            target = _place(name, agent_id)
        else:
            target = LinkTarget("session", {"token": ref.session_token, "session": ref.session_id, "path": name})
        if target is not None:
            found[name] = target
    return found


def _place(name: str, agent_id: str) -> LinkTarget | None:
    ours = page_agent(name) == agent_id
    if ours and (match := _DAY.search(name)):
        day = "-".join(match.groups())
        return LinkTarget("sessions", {"from": day, "to": day})
    if ours and (match := _MONTH.search(name)):
        year, month = int(match[1]), int(match[2])
        last = monthrange(year, month)[1] if year and 1 <= month <= 12 else 31  # the list reports an invalid month
        begin = f"{match[1]}-{match[2]}"
        return LinkTarget("sessions", {"from": f"{begin}-01", "to": f"{begin}-{last}"})
    place = parse_path(name)
    if place is not None:
        return LinkTarget("entity", {"entity": place.id}) if place.agent_id == agent_id else None
    if kind_of(name) is not None:
        return LinkTarget("entity", {"entity": name})
    return LinkTarget("node", {"node": name}) if HANDLE.fullmatch(name) else None
