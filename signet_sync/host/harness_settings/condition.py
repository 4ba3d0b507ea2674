"""What is found at a harness, and what would be changed there: the values that its module answers with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """Something a person should know; `hint` is what to do about it."""

    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Edit:
    """One file of a harness, before and after; None stands for a file that is not there."""

    path: str
    before: bytes | None
    after: bytes | None

    @property
    def kind(self) -> str:
        """`unchanged`, `created`, `changed` or `removed`."""
        if self.before == self.after:
            return "unchanged"
        if self.before is None:
            return "created"
        return "removed" if self.after is None else "changed"


@dataclass(frozen=True, slots=True)
class Plan:
    """What an installation or removal comes to: files, what was trusted for the person, what is left to them."""

    edits: tuple[Edit, ...]
    trusted: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Server:
    """Our MCP server in a harness's settings: their path, and the words that start it."""

    path: str
    words: tuple[str, ...]

    def flag(self, name: str) -> str | None:
        """What follows a flag; None where it is not given."""
        return self.words[self.words.index(name) + 1] if name in self.words[:-1] else None


@dataclass(frozen=True, slots=True)
class Condition:
    """The state of our hooks at one harness, and of our MCP server where it is registered there.

    `found`: the harness's folder is there. `events` are those that call us, `missing` those that should. `workspace`
    is the root that the present hooks feed, None for the default one. `trusted` is None where nothing asks for trust.
    """

    harness: str
    found: bool
    path: str
    events: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    workspace: str | None = None
    problems: tuple[Problem, ...] = ()
    trusted: bool | None = None
    server: Server | None = None

    @property
    def installed(self) -> bool:
        """Every event of this harness calls us."""
        return bool(self.events) and not self.missing
