"""The frontmatter of an entity file, changed key by key: every line that is not about a changed key stays as it is."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from signet_sync.formats.body import well_formed
from signet_sync.formats.frontmatter import read, serialize, split, unknown_entries

LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:\s|$)", re.ASCII)


def line_end(text: str) -> str:
    """How the first line of a text ends; a line feed where it has no end."""
    found = re.search(r"\r\n|\r|\n", text)
    return found[0] if found else "\n"


def as_read(value: object) -> Any:
    """A value as it is when read again: numbers are text, an empty sequence is None."""
    if isinstance(value, (list, tuple)):
        return [as_read(item) for item in value] or None
    return None if value is None else well_formed(str(value))


def changed(head: str, fields: Mapping[str, Any], changes: Mapping[str, Any], gone: Collection[str] = ()) -> str:
    """The head (with its fences, read as `fields`) with other values for some keys, and without those in `gone`.

    New keys come last.

    Where a reader would understand the lines of others differently than before (values over several lines, in forms of
    YAML that nobody writes by hand), the keys of others are written anew, each with its own lines.
    """
    end = line_end(head)
    lines = LINES.findall(head)
    wanted = {key: value for key, value in fields.items() if key not in gone}
    wanted |= {key: as_read(value) for key, value in changes.items()}
    for key in gone:
        start, stop = _lines_of(key, lines)
        del lines[start:stop]
    for key, value in changes.items():
        fresh = [f"{line}{end}" for line in serialize({key: value}).split("\n")[1:-1]]
        start, stop = _lines_of(key, lines)
        lines[start:stop] = fresh
    text = "".join(lines)
    return text if _reads_as(text, wanted) else _written_anew(head, changes, gone, end)


def _lines_of(key: str, lines: list[str]) -> tuple[int, int]:
    """Where the lines of a top-level key lie; where there is no such key, the place before the closing fence."""
    last = next(at for at in range(1, len(lines)) if lines[at].rstrip() == "---")
    for start in range(1, last):
        match = _KEY.match(lines[start])
        if match is None or match[1] != key:
            continue
        stop = start + 1
        # Items of a list may stand at the margin; blank lines and remarks behind the value are somebody's.
        for at in range(start + 1, last):
            if lines[at].startswith((" ", "\t", "- ")) and lines[at].strip():
                stop = at + 1
            elif lines[at].strip():
                break
        return start, stop
    return last, last


def _inner(head: str) -> str:
    text = head.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return split(text)[0]


def _reads_as(head: str, wanted: Mapping[str, Any]) -> bool:
    try:
        return read(_inner(head)) == wanted
    except ValueError:
        return False


def _written_anew(head: str, changes: Mapping[str, Any], gone: Collection[str], end: str) -> str:
    entries: dict[str, Any] = dict(unknown_entries(_inner(head), frozenset(gone)))
    text = serialize({**entries, **changes}) + "\n"
    mark = "\ufeff" if head.startswith("\ufeff") else ""
    return mark + text.replace("\n", end)
