"""Defines what a harness answers: the state found, and the changes planned."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HarnessProblem:
    """A problem to show to a person; `hint` is what to do about it."""

    code: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Edit:
    """One file before and after, None where there is none; `ours` if the whole file is."""

    path: str
    before: bytes | None
    after: bytes | None
    ours: bool = False

    @property
    def kind(self) -> str:
        """Returns `unchanged`, `created`, `changed` or `removed`."""
        if self.before == self.after:
            return "unchanged"
        return "created" if self.before is None else "removed" if self.after is None else "changed"


@dataclass(frozen=True, slots=True)
class SettingsPlan:
    """A planned installation or removal: files, and what the user has to do."""

    edits: tuple[Edit, ...] = ()
    by_hand: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Server:
    """Our MCP server in a harness's settings: their path, and the words that start it."""

    path: str
    words: tuple[str, ...]

    def flag(self, name: str) -> str | None:
        """Returns the word after a flag; None if the flag is missing."""
        return self.words[self.words.index(name) + 1] if name in self.words[:-1] else None


@dataclass(frozen=True, slots=True)
class Condition:
    """The state of our hooks in one harness, and of our MCP server if registered there.

    `found`: the harness's folder exists. `events` are those that call us, `missing` those that should, `signet` those
    that call Signet. `workspace` is the root to which the present hooks send sessions, None for the default one. `asks`
    is what the harness itself will ask the person.
    """

    harness: str
    found: bool
    path: str
    events: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    workspace: str | None = None
    problems: tuple[HarnessProblem, ...] = ()
    server: Server | None = None
    signet: tuple[str, ...] = ()
    asks: str = ""

    @property
    def installed(self) -> bool:
        """Returns whether every event of this harness calls us."""
        return bool(self.events) and not self.missing
