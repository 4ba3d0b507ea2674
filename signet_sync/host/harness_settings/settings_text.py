"""The editors of other programs' settings: what stands where, put and taken out in place; here that of JSON.

An editor changes the text only where a value is put or taken out: comments, order, indentation and line ends of the
rest stay. Each change is parsed again and compared with what was meant, so that none can do harm.

JSON is edited as text, with comments and trailing commas, which many programs accept. A copy of the text of the same
length, in which comments and trailing commas are blanks, is strict JSON: positions found in it by Python's decoder are
positions in the text.
"""

import json
import re
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

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

    `found`: the harness's folder exists. `events` are those that call us, `missing` those that should.
    `workspace` is the root to which the present hooks send sessions, None for the default one. `asks`
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
    asks: str = ""

    @property
    def is_installed(self) -> bool:
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
        self.data = {} if self.text is None else self.parse(self.text)

    def find(self, way: Way) -> Any:
        """Returns the value that stands there; None if there is none."""
        return find_value(self.data, way)

    def put(self, way: Way, value: Any) -> None:
        """Puts a value there, in place of the present one or at the end; makes what has to contain it."""
        for depth, step in enumerate(way):
            there, wanted = self.find(way[:depth]), dict if isinstance(step, str) else list
            if there is not None and not isinstance(there, wanted):
                kind = "an object" if wanted is dict else "a list"
                raise unusable(self.path, f'"{_dot_way(way[:depth])}" is not {kind}')
        if self.find(way) == value:
            return
        text = self.with_value(way, value)
        self._take(way, text, change_value(self.data, way, value))

    def append(self, way: Way, value: Any) -> None:
        """Puts a value at the end of the list there."""
        there = self.find(way)
        self.put((*way, len(there) if isinstance(there, list) else 0), value)

    def remove(self, way: Way) -> None:
        """Takes a value out, if it is there."""
        if self.find(way) is None:
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
            after = self.parse(text)
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
    def parse(self, text: str) -> dict[str, Any]:
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


# A string is matched first, so that nothing in it counts; one without an end runs to the end of the text.
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*"?)|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r'("(?:[^"\\]|\\.)*"?)|,(?=[ \t\r\n]*[}\]])', re.DOTALL)
_CONTENT = re.compile(r"[^ \t\r\n]|\Z")
_LINE_END = re.compile(r"[ \t]*(?:\r?\n|\Z)")
_BOM = "\ufeff"


class Child(NamedTuple):
    """A member of an object or an element of a list: text from `start` to `end`, its value from `value` on."""

    key: str | None
    start: int
    value: int
    end: int


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


class JsonText(SettingsText):
    """A JSON document whose outermost value is an object."""

    def parse(self, text: str) -> dict[str, Any]:
        """Parses the document. Raises `ConfigError` with line and remedy."""
        if not text.strip():
            raise unusable(self.path, "the file is empty", "delete it or write {} into it")
        try:
            data = _DECODER.decode(_strict(text))
        except json.JSONDecodeError as error:
            raise unusable(self.path, f"line {error.lineno}: {error.msg}") from error
        except (ValueError, RecursionError) as error:
            raise unusable(self.path, f"line 1: {error}") from error
        if not isinstance(data, dict):
            raise unusable(self.path, "the file is not a JSON object")
        return data

    def with_value(self, way: Way, value: Any) -> str:
        """Returns the document with a value put there, formatted as its neighbours are."""
        steps = [] if self.text is None else self._steps(way)
        for step in reversed(way[len(steps) :]):
            value = {step: value} if isinstance(step, str) else [value]
        if self.text is None:
            return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        if len(steps) <= len(way):
            return self._append(steps[-1], way[len(steps) - 1], value)
        child = steps[-1]
        indent = _indent(self.text, child.start) if "\n" in self.text[child.value : child.end] else None
        return self.text[: child.value] + self._format(value, indent) + self.text[child.end :]

    def remove(self, way: Way) -> None:
        """Takes a value out, and what contained it as long as nothing else, not even a comment, is left in that."""
        before = self.text
        super().remove(way)
        box = self._steps(way[:-1])[-1]
        if self.text != before and len(way) > 1 and (self.text or "")[box.value : box.end] in ("{}", "[]"):
            self.remove(way[:-1])

    def without_value(self, way: Way) -> str:
        """Returns the document without a value, its name, its comma, and its line where nothing else stands in it."""
        text = self.text or ""
        *_, box, child = self._steps(way)
        # Between two children there is nothing but blanks, comments and a comma.
        siblings = _children(_strict(text), box.value)
        left = max((one.end for one in siblings if one.end <= child.start), default=box.value + 1)
        right = min((one.start for one in siblings if one.start >= child.end), default=box.end - 1)
        behind, ahead = text[left : child.start], text[child.end : right]
        if len(siblings) == 1 and not (behind + ahead).strip(" \t\r\n,"):
            return text[: box.value + 1] + text[box.end - 1 :]
        if (comma := _blank_out(_COMMENT, ahead).find(",")) >= 0:
            ahead = ahead[:comma] + ahead[comma + 1 :]
        elif (comma := _blank_out(_COMMENT, behind).find(",")) >= 0:
            behind = behind[:comma] + behind[comma + 1 :]
        before, after = text[:left] + behind, ahead + text[right:]
        lead = before.rstrip(" \t")
        if not lead.endswith("\n"):
            return lead + (after if lead != before else after.lstrip(" \t"))
        if _LINE_END.match(after):
            return lead[:-1].removesuffix("\r") + after
        return before + after.lstrip(" \t")

    def _steps(self, way: Way) -> list[Child]:
        """Returns the outermost value and what the way leads to, as far as it exists."""
        plain = _strict(self.text or "")
        start = _skip(plain, 0)
        found = [Child(None, start, start, _DECODER.raw_decode(plain, start)[1])]
        for step in way:
            inside = _children(plain, found[-1].value)
            # Of several members with one name the last counts, as in every parser.
            named = [one for one in inside if one.key == step] if isinstance(step, str) else inside[step : step + 1]
            if not named:
                break
            found.append(named[-1])
        return found

    def _append(self, box: Child, step: str | int, value: Any) -> str:
        """Returns the document with one more value at the end of the object or list `box`."""
        text = self.text or ""
        newline, unit = self._style()
        inside = _children(_strict(text), box.value)
        outer, close = _indent(text, box.value), box.end - 1
        begin = inside[-1].end if inside else box.value + 1
        tail = text[begin:close]
        kept = tail.rstrip()  # comments, maybe after a comma
        indent = None if unit is None and not kept else outer + (unit or "  ")
        if inside:
            lead = text[inside[-2].end if len(inside) > 1 else box.value + 1 : inside[-1].start]
            indent = _indent(lead, len(lead)) if "\n" in lead else indent if "//" in kept else None
        name = f"{json.dumps(step, ensure_ascii=False)}: " if isinstance(step, str) else ""
        item = name + self._format(value, indent)
        rest = tail[len(kept) :]
        if not inside:
            rest = "" if indent is None else newline + outer
        elif "," in _blank_out(_COMMENT, tail):
            item += ","
        else:
            kept = f",{kept}"
        gap = newline + indent if indent is not None else " " if inside else ""
        return text[:begin] + kept + gap + item + rest + text[close:]

    def _style(self) -> tuple[str, str | None]:
        """Returns the line end, and one step of indentation, which is None if all is on one line."""
        text = self.text or ""
        root = self._steps(())[0]
        inside = _children(_strict(text), root.value)
        lead = text[root.value + 1 : inside[0].start] if inside else "\n  "
        return "\r\n" if "\r\n" in text else "\n", _indent(lead, len(lead)) if "\n" in lead else None

    def _format(self, value: Any, indent: str | None) -> str:
        newline, unit = self._style()
        text = json.dumps(value, ensure_ascii=False, indent=None if indent is None else unit or "  ")
        return text.replace("\n", newline + (indent or ""))


@lru_cache(maxsize=2)
def _strict(text: str) -> str:
    """Returns the text as strict JSON of the same length; the text itself if it is that."""
    text = f" {text[1:]}" if text.startswith(_BOM) else text
    with suppress(ValueError, RecursionError):
        _DECODER.decode(text)
        return text
    return _blank_out(_TRAILING, _blank_out(_COMMENT, text))


def _blank_out(what: re.Pattern[str], text: str) -> str:
    return what.sub(lambda found: found[1] or re.sub(r"[^\r\n]", " ", found[0]), text)


def _children(plain: str, start: int) -> list[Child]:
    """Returns the content of the object or list that begins at `start` of strict JSON."""
    found: list[Child] = []
    if plain[start] not in "{[":
        return found
    named = plain[start] == "{"
    position = _skip(plain, start + 1)
    while plain[position] not in "}]":
        begin, key = position, None
        if named:
            key, position = _DECODER.raw_decode(plain, position)
            position = _skip(plain, _skip(plain, position) + 1)
        _, end = _DECODER.raw_decode(plain, position)
        found.append(Child(key, begin, position, end))
        position = _skip(plain, end)
        if plain[position] == ",":
            position = _skip(plain, position + 1)
    return found


def _indent(text: str, position: int) -> str:
    """Returns the indentation of the line that contains a position."""
    line = text[text.rfind("\n", 0, position) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _skip(text: str, position: int) -> int:
    return next(_CONTENT.finditer(text, position)).start()
