"""Defines requests to views and their answers as plain values, so that views can be called without a server."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from signet_sync.formats.paths import DEFAULT_AGENT
from signet_sync.sync.read_only import IndexPlace

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
