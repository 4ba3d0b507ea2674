"""Provides what surrounds every view: workspace name, navigation, agents, and the state of the background agent."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property

from signet_sync import __version__
from signet_sync.admin.status import Liveness, liveness
from signet_sync.errors import SignetSyncError
from signet_sync.sync.read_only import reading
from signet_sync.sync.store import counts
from signet_sync.web.request import Site

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
