"""Edits JSON documents of other programs as text, so that an insertion can be removed again to the byte.

Only inserts and cuts at the ends of values: order, indentation, line ends, escapes and odd blank lines of the rest
never
change. The content of a list or object that existed before, but empty, follows its bracket after one blank (`MARK`); in
one that we created it does not. So a cut can tell whether to remove the brackets, too, without stored state.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

MARK = " "

_BLANKS = re.compile(r"[ \t\r\n]*")
_INDENT = re.compile(r"[ \t]*")
_BOM = "\ufeff"


class NotJson(ValueError):
    """A document that cannot be parsed; `line` counts from 1, `comment` means that a comment may be the cause."""

    def __init__(self, message: str, line: int, comment: bool) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.comment = comment


@dataclass(frozen=True, slots=True)
class Child:
    """A member of an object or an element of a list: text from `start` to `end`, its value from `value` on."""

    key: str | None
    start: int
    value: int
    end: int
    data: Any


@dataclass(frozen=True, slots=True)
class Style:
    """A document's formatting. `unit` is one step of indentation, None if everything is on one line."""

    newline: str
    unit: str | None
    comma: str
    colon: str


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def parse(text: str) -> Any:
    """Parses the document. Raises `NotJson` for anything but strict JSON, comments included."""
    body = text.removeprefix(_BOM)
    try:
        return json.loads(body, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        around = body[max(0, error.pos - 1) : error.pos + 2]
        raise NotJson(error.msg, error.lineno, "//" in around or "/*" in around) from error
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error), 1, comment=False) from error


def root(text: str) -> int:
    """Returns the start of the document's value."""
    return _skip(text, len(_BOM) if text.startswith(_BOM) else 0)


def children(text: str, start: int) -> list[Child]:
    """Returns the content of the object or list that begins at `start` of a document that `parse` accepts."""
    found = []
    named = text[start] == "{"
    position = _skip(text, start + 1)
    while text[position] not in "}]":
        begin, key = position, None
        if named:
            key, position = _DECODER.raw_decode(text, position)
            position = _skip(text, _skip(text, position) + 1)
        data, end = _DECODER.raw_decode(text, position)
        found.append(Child(key, begin, position, end, data))
        position = _skip(text, end)
        if text[position] == ",":
            position = _skip(text, position + 1)
    return found


def member(text: str, start: int, key: str) -> Child | None:
    """Returns the effective member of an object: of several with one name the last, as in every parser."""
    return next((child for child in reversed(children(text, start)) if child.key == key), None)


def style(text: str) -> Style:
    """Returns a document's style, taken from its outermost object; if that is empty, steps of two blanks."""
    newline = "\r\n" if "\r\n" in text else "\n"
    start = root(text)
    inside = children(text, start)
    if not inside:
        return Style(newline, "  ", ", ", ": ")
    first = inside[0]
    colon = ": " if first.key is None or text[first.value - 1] in " \t\r\n" else ":"
    lead = text[start + 1 : first.start]
    if "\n" in lead:
        return Style(newline, _last_blanks(lead), ", ", colon)
    roomy = colon == ": " if len(inside) == 1 else text[inside[1].start - 1] in " \t\r\n"
    return Style(newline, None, ", " if roomy else ",", colon)


def new_document(value: Any) -> str:
    """Serialises a document of our own."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def appended(text: str, start: int, value: Any, key: str | None = None) -> str:
    """Returns the document with one more value at the end of the object (with `key`) or list at `start`."""
    layout = style(text)
    inside = children(text, start)
    outer = _line_indent(text, start)
    indent: str | None = None
    if inside:
        lead = text[inside[-2].end + 1 if len(inside) > 1 else start + 1 : inside[-1].start]
        indent = _last_blanks(lead) if "\n" in lead else None
    elif layout.unit is not None:
        indent = outer + layout.unit
    name = "" if key is None else json.dumps(key) + layout.colon
    item = name + _written(value, layout, indent)
    if inside:
        gap = layout.comma[1:] if indent is None else layout.newline + indent
        return f"{text[: inside[-1].end]},{gap}{item}{text[inside[-1].end :]}"
    if indent is not None:
        item = f"{layout.newline}{indent}{item}{layout.newline}{outer}"
    return text[: start + 1] + MARK + item + text[start + 1 :]


def replaced(text: str, child: Child, value: Any) -> str:
    """Returns the document with a child's value replaced; on one line if the old value was."""
    layout = style(text)
    indent = _line_indent(text, child.start) if "\n" in text[child.value : child.end] else None
    return text[: child.value] + _written(value, layout, indent) + text[child.end :]


def without(text: str, start: int, index: int) -> str | None:
    """Returns the document without one child of the object or list that begins at `start`.

    None if nothing would be left in it and we created it: then it has to be removed itself.
    """
    inside = children(text, start)
    child = inside[index]
    if index > 0:
        return text[: inside[index - 1].end] + text[child.end :]
    if len(inside) > 1:
        return text[: child.start] + text[inside[1].start :]
    lead = text[start + 1 : child.start]
    rest = text[child.end :]
    if lead == MARK:
        return text[: start + 1] + rest
    newline = style(text).newline
    if lead.startswith(MARK + newline):
        return text[: start + 1] + rest.removeprefix(newline + _line_indent(text, start))
    return None


def cut(text: str, steps: Sequence[tuple[int, Child]]) -> str | None:
    """Returns the document without the last of these children, each in the object or list at its position.

    What we created to contain it is removed, too; None if that is the whole document.
    """
    for start, child in reversed(steps):
        index = next(i for i, other in enumerate(children(text, start)) if other.start == child.start)
        shorter = without(text, start, index)
        if shorter is not None:
            return shorter
    return None


def _written(value: Any, layout: Style, indent: str | None) -> str:
    if indent is None:
        return json.dumps(value, ensure_ascii=False, separators=(layout.comma, layout.colon))
    unit = "  " if layout.unit is None else layout.unit
    text = json.dumps(value, ensure_ascii=False, indent=unit, separators=(",", layout.colon))
    return text.replace("\n", layout.newline + indent)


def _line_indent(text: str, position: int) -> str:
    """Returns the indentation of the line that contains a position."""
    match = _INDENT.match(text, text.rfind("\n", 0, position) + 1)
    assert match is not None
    return match[0]


def _last_blanks(lead: str) -> str:
    return lead[len(lead.rstrip(" \t")) :]


def _skip(text: str, position: int) -> int:
    match = _BLANKS.match(text, position)
    assert match is not None
    return match.end()
