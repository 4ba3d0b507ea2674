"""Reads JSON Lines as harnesses write them: one object a line, with damaged lines and a torn last line counted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

# What a line is replaced by that is longer than 64 MiB.
TOO_LONG = b"(too long)\n"


class JsonLines:
    """Iterating yields the objects, line by line, and counts what could not be read.

    `read` counts the objects; `damaged` counts the lines without one (no JSON, nested too deep, another kind of value),
    except the last line: that sets `torn`, because a running session may be in the middle of writing it. Invalid UTF-8
    becomes U+FFFD. `blank` counts the lines without a character, `too_long` those that were too long to read. No input
    raises.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self.read = self.damaged = self.blank = self.too_long = 0
        self.torn = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for line in self._lines:
            if line.isspace() or not line:
                self.blank += 1
                continue
            self.too_long += line == TOO_LONG
            record = parse_line(line)
            self.damaged += self.torn
            self.torn = record is None
            if record is not None:
                self.read += 1
                yield record


def parse_line(line: bytes) -> dict[str, Any] | None:
    """Returns the JSON object of a line or document, or None."""
    text = line.decode("utf-8", "replace").removeprefix("\ufeff").lstrip(" \t\r\n")
    if not text.startswith("{"):
        return None
    try:
        # ValueError also covers integers with more digits than Python accepts.
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
