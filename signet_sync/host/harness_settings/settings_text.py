"""The interface of the two editors of other programs' settings: what stands where, put and taken out in place.

An editor changes the text only where a value is put or taken out: comments, order, indentation and line ends of the
rest stay. Each change is parsed again and compared with what was meant, so that none can do harm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from signet_sync.errors import ConfigError


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


Way = tuple[str | int, ...]  # names of members and positions in lists, from the outermost value


class SettingsText(ABC):
    """A settings file in memory. Raises `ConfigError` at anything that cannot be edited safely."""

    def __init__(self, path: str, raw: bytes | None) -> None:
        self.path = path
        self.before = raw
        try:
            self.text = None if raw is None else raw.decode("utf-8")
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise unusable(path, f"line {line}: not UTF-8", "save the file as UTF-8") from error
        self.data = {} if self.text is None else self.parsed(self.text)

    def at(self, way: Way) -> Any:
        """Returns the value that stands there; None if there is none."""
        return find_value(self.data, way)

    def put(self, way: Way, value: Any) -> None:
        """Puts a value there, in place of the present one or at the end; makes what has to contain it."""
        for depth, step in enumerate(way):
            there, wanted = self.at(way[:depth]), dict if isinstance(step, str) else list
            if there is not None and not isinstance(there, wanted):
                kind = "an object" if wanted is dict else "a list"
                raise unusable(self.path, f'"{_dot_way(way[:depth])}" is not {kind}')
        if self.at(way) == value:
            return
        text = self.with_value(way, value)
        self._take(way, text, change_value(self.data, way, value))

    def append(self, way: Way, value: Any) -> None:
        """Puts a value at the end of the list there."""
        there = self.at(way)
        self.put((*way, len(there) if isinstance(there, list) else 0), value)

    def remove(self, way: Way) -> None:
        """Takes a value out, if it is there."""
        if self.at(way) is None:
            return
        text = self.without_value(way)
        self._take(way, text, change_value(self.data, way))

    def edit(self, *, made_by_us: bool = False) -> Edit:
        """Returns what has changed since; a file `made_by_us` goes when nothing is left in it."""
        gone = self.text is None or (made_by_us and self.text.strip() in ("", "{}"))
        return Edit(self.path, self.before, None if gone else (self.text or "").encode())

    def _take(self, way: Way, text: str, expected: Any) -> None:
        """Takes a text over after it was parsed again and says what was meant, nothing else."""
        above = way[:-1]
        try:
            after = self.parsed(text)
            while above and find_value(after, above) is None and find_value(expected, above) == {}:
                expected, above = (
                    change_value(expected, above),
                    above[:-1],
                )  # in TOML a table of nothing may be no table
            if after != expected:
                raise self._unsafe(way)
        except (ConfigError, RecursionError):
            raise self._unsafe(way) from None
        self.text, self.data = text, after

    def _unsafe(self, way: Way) -> ConfigError:
        return unusable(self.path, f'"{_dot_way(way)}" stands where it cannot be edited safely', "edit it by hand")

    @abstractmethod
    def parsed(self, text: str) -> dict[str, Any]:
        """Parses the settings. Raises `ConfigError` with line and remedy."""

    @abstractmethod
    def with_value(self, way: Way, value: Any) -> str:
        """Returns the text with a value put there."""

    @abstractmethod
    def without_value(self, way: Way) -> str:
        """Returns the text without the value that is there."""


def find_value(value: Any, way: Way) -> Any:
    """Returns the value that stands there; None if there is none."""
    for step in way:
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, dict) else None
        else:
            value = value[step] if isinstance(value, list) and step < len(value) else None
    return value


def change_value(value: Any, way: Way, *new: Any) -> Any:
    """Returns a copy with a new value there, or without the one that is there."""
    step, below = way[0], way[1:]
    if below:
        new = (change_value(find_value(value, (step,)), below, *new),)
    if isinstance(step, int):
        elements = value or []
        return [*elements[:step], *new, *elements[step + 1 :]]
    if new:
        return {**(value or {}), step: new[0]}
    return {name: one for name, one in value.items() if name != step}


def unusable(path: str, message: str, hint: str = "correct this") -> ConfigError:
    """Returns the error for settings that are not edited until a person has repaired them."""
    hint = f"{hint}, then try again; nothing was written"
    return ConfigError(message, path=path, hint=hint, code="settings-unparsable")


def _dot_way(way: Way) -> str:
    return ".".join(map(str, way))
