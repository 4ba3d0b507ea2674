"""JSON Lines as harnesses write them: one object a line, now and then a damaged one, and perhaps a torn one last."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any


class JsonLines:
    """Iterating yields the objects, line by line; what could not be read is counted.

    `read` counts the objects; `damaged` the lines that hold none (no JSON, nested too deep, another kind of value),
    but for a last one: that is `torn`, because a session that still runs may be in the middle of writing it. Invalid
    UTF-8 becomes U+FFFD. No input raises.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self.read = self.damaged = 0
        self.torn = False

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for line in self._lines:
            if line.isspace() or not line:
                continue
            record = parsed(line)
            self.damaged += self.torn
            self.torn = record is None
            if record is not None:
                self.read += 1
                yield record


def parsed(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line or document, None where there is none."""
    text = line.decode("utf-8", "replace").removeprefix("\ufeff").lstrip(" \t\r\n")
    if not text.startswith("{"):
        return None
    try:
        # ValueError also covers integers of more digits than Python is willing to read.
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
