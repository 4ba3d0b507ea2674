"""Defines requests to views, their answers, and the frame of every page as plain values: no server is needed."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

from signet_sync import __version__
from signet_sync.admin.status import Liveness, liveness
from signet_sync.errors import SignetSyncError
from signet_sync.formats.paths import DEFAULT_AGENT
from signet_sync.sync.read_only import IndexPlace, reading
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
    """The rows of one portion, its number from 1, the index of its first row, and the total."""

    rows: Sequence[Row]
    number: int
    first: int
    total: int

    @property
    def before(self) -> int | None:
        """Returns the number of the previous portion, or None."""
        return self.number - 1 if self.number > 1 else None

    @property
    def after(self) -> int | None:
        """Returns the number of the next portion, or None."""
        return self.number + 1 if self.first + len(self.rows) < self.total else None

    @property
    def label(self) -> str:
        """Returns `61–120 of 300`."""
        return f"{self.first + 1}–{self.first + len(self.rows)} of {self.total}" if self.rows else ""


def portion(rows: Sequence[Row], asked: str | None, size: int) -> Portion[Row]:
    """Returns the portion that a request names, or the nearest that exists."""
    last = max((len(rows) - 1) // size + 1, 1)
    number = int(asked) if asked and asked.isascii() and asked.isdigit() and len(asked) < 8 else 1
    number = min(max(number, 1), last)
    first = (number - 1) * size
    return Portion(rows[first : first + size], number, first, len(rows))


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


@dataclass(frozen=True)
class Frame:
    """Values for the layout, each computed when a template uses it."""

    site: Site
    section: str = ""  # the view of the navigation that is shown, or contains what is shown
    version: str = __version__
    navigation: tuple[tuple[str, str], ...] = NAVIGATION

    @property
    def root(self) -> str:
        """Returns the workspace's path."""
        return self.site.place.root

    @property
    def place(self) -> str:
        """Returns the path as a person writes it."""
        home = f"{os.path.expanduser('~')}/"
        return f"~/{self.root.removeprefix(home)}" if self.root.startswith(home) else self.root

    @property
    def name(self) -> str:
        """Returns the workspace's name: that of its folder."""
        return os.path.basename(self.root.rstrip("/")) or self.root

    @cached_property
    def agents(self) -> list[str]:
        """Returns every agent with a memory; empty if the index cannot be read, which the view itself reports."""
        try:
            with reading(self.site.place) as database:
                return counts.agents(database)
        except (SignetSyncError, OSError):
            return []

    @cached_property
    def life(self) -> Liveness:
        """Returns whether the background agent runs, and the state it last reported."""
        return liveness(self.site.place)

    @property
    def tone(self) -> str:
        """Returns the class of a badge for that state."""
        return tone_of(self.life.state, running=self.life.running, responding=self.life.responding)


def tone_of(state: str, *, running: bool, responding: bool | None) -> str:
    """Returns the class of a badge for a state of the agent."""
    if "halted" in state or (running and not responding):
        return "bad"
    if not running:
        return "quiet"
    return "ok" if state in _WELL else "warn"
