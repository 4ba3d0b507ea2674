"""Defines requests to views, their answers, and the frame of every page as plain values: no server is needed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from signet_sync import __version__
from signet_sync.admin.status import liveness
from signet_sync.errors import SignetSyncError
from signet_sync.formats.paths import DEFAULT_AGENT
from signet_sync.sync.read_only import IndexPlace, open_index
from signet_sync.sync.store import counts

# A placeholder for a person's own words in a command.
WORDS = "…"
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Site:
    """The workspace that is shown, and the agent whose memory is shown if a request names none."""

    place: IndexPlace
    agent: str


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """One request: its agent, path parameters and query (each name once), and the present in microseconds."""

    site: Site
    agent: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    now_us: int

    def command(self, *words: str, own_agent: bool = True) -> str:
        """Returns a command line that can be pasted into a shell, whatever its words contain.

        It names the agent if that is not the default one and the command accepts it (`own_agent`).
        """
        agent = ["--agent", self.agent] if own_agent and self.agent != DEFAULT_AGENT else []
        return self.site.place.command_line(shlex.join([*words, *agent]))


@dataclass(frozen=True, slots=True)
class WebPage:
    """What is shown: a template's name without `.html`, the page's title, its values, the HTTP status."""

    template: str
    title: str
    data: dict[str, Any] = field(default_factory=dict)
    status: int = 200


View = Callable[[ViewRequest], WebPage]


# ── a page of a long list ──


@dataclass(frozen=True, slots=True)
class Portion(Generic[Row]):
    """The rows of one portion, the index of the first, the total, the numbers of its neighbours, `61–120 of 300`."""

    rows: Sequence[Row]
    first: int
    total: int
    before: int | None
    after: int | None
    label: str


def portion(rows: Sequence[Row], asked: str | None, size: int) -> Portion[Row]:
    """Returns the portion that a request names (from 1), or the nearest that exists."""
    last = max((len(rows) - 1) // size + 1, 1)
    number = min(page_number(asked), last)
    first, total = (number - 1) * size, len(rows)
    shown = rows[first : first + size]
    label = f"{first + 1}–{first + len(shown)} of {total}" if shown else ""
    before, after = number - 1 if number > 1 else None, number + 1 if number < last else None
    return Portion(shown, first, total, before, after, label)


def page_number(asked: str | None) -> int:
    """Returns the number of a page that a request names; the first for anything else."""
    return max(int(asked), 1) if asked and asked.isascii() and asked.isdigit() and len(asked) < 8 else 1


# ── what surrounds every view ──

# The view's name and its label.
NAVIGATION = (
    ("overview", "Overview"),
    ("sessions", "Sessions"),
    ("threads", "Threads"),
    ("violations", "Problems"),
    ("entities", "Entities"),
)
_WELL = ("watching", "polling", "reconciling", "starting")


def frame_of(site: Site, section: str) -> dict[str, Any]:
    """Returns the values of the layout; `section` is the view of the navigation that is shown, or contains it."""
    root, home, life = site.place.root, f"{os.path.expanduser('~')}/", liveness(site.place)
    try:
        with open_index(site.place) as database:
            agents = counts.agents(database)
    except (SignetSyncError, OSError):  # which the view itself reports
        agents = []
    return {
        "site": site,
        "section": section,
        "version": __version__,
        "navigation": NAVIGATION,
        "place": f"~/{root.removeprefix(home)}" if root.startswith(home) else root,  # as a person writes it
        "name": os.path.basename(root.rstrip("/")) or root,
        "agents": agents,
        "life": life,
        "tone": tone_of(life.state, running=life.running, responding=life.is_responding),
    }


def tone_of(state: str, *, running: bool, responding: bool | None) -> str:
    """Returns the class of a badge for a state of the agent."""
    if "halted" in state or (running and not responding):
        return "bad"
    if not running:
        return "quiet"
    return "ok" if state in _WELL else "warn"
