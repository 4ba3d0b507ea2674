"""Changes single keys in the frontmatter of an entity file; all other lines stay the same."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from signet_sync.formats.body import well_formed
from signet_sync.formats.frontmatter import read, serialize, split, unknown_entries

LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:(?:\s|$)", re.ASCII)


def line_end(text: str) -> str:
    """Returns the line end of a text's first line; a line feed if there is none."""
    found = re.search(r"\r\n|\r|\n", text)
    return found[0] if found else "\n"


def as_read(value: object) -> Any:
    """Returns a value as it will be read back: numbers are text, an empty sequence is None."""
    if isinstance(value, (list, tuple)):
        return [as_read(item) for item in value] or None
    return None if value is None else well_formed(str(value))


def changed(head: str, fields: Mapping[str, Any], changes: Mapping[str, Any], gone: Collection[str] = ()) -> str:
    """Returns the head (with its fences, parsed as `fields`) with changed keys, and without those in `gone`.

    New keys come last.

    If the other keys would then be read differently (values over several lines, in forms of YAML that people do not
    write by hand), the whole frontmatter is rewritten; each of the other keys keeps its lines.
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
    return text if _reads_as(text, wanted) else _rewritten(head, changes, gone, end)


def _lines_of(key: str, lines: list[str]) -> tuple[int, int]:
    """Returns the lines of a top-level key; for an unknown key, the position before the closing fence."""
    last = next(at for at in range(1, len(lines)) if lines[at].rstrip() == "---")
    for start in range(1, last):
        match = _KEY.match(lines[start])
        if match is None or match[1] != key:
            continue
        stop = start + 1
        # List items need no indentation; blank lines and comments after the value are not ours.
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


def _rewritten(head: str, changes: Mapping[str, Any], gone: Collection[str], end: str) -> str:
    entries: dict[str, Any] = dict(unknown_entries(_inner(head), frozenset(gone)))
    text = serialize({**entries, **changes}) + "\n"
    mark = "\ufeff" if head.startswith("\ufeff") else ""
    return mark + text.replace("\n", end)
