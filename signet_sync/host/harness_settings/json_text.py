"""Edits JSON documents of other programs as text, with comments and trailing commas, which many of them accept.

A copy of the text of the same length, in which comments and trailing commas are blanks, is strict JSON: positions found
in it by Python's decoder are positions in the text.
"""

import json
import re
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from signet_sync.host.harness_settings.settings_text import SettingsText, Way, unusable

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

    def parsed(self, text: str) -> dict[str, Any]:
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
            return self._appended(steps[-1], way[len(steps) - 1], value)
        child = steps[-1]
        indent = _indent(self.text, child.start) if "\n" in self.text[child.value : child.end] else None
        return self.text[: child.value] + self._written(value, indent) + self.text[child.end :]

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

    def _appended(self, box: Child, step: str | int, value: Any) -> str:
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
        item = name + self._written(value, indent)
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

    def _written(self, value: Any, indent: str | None) -> str:
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
