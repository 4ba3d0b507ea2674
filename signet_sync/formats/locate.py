"""Finds the line of a file that a problem is about, and rows of a page that differ from their artifacts."""

import re
from collections.abc import Callable, Collection
from typing import NamedTuple

from signet_sync.formats import managed_block
from signet_sync.formats.lazy_pattern import late

_FIELD = {
    "hash-mismatch": "content_sha256",
    "captured-at-mismatch": "captured_at",
    "agent-invalid": "agent_id",
    "token-mismatch": "session_id",
    "kind-mismatch": "kind",
}
_NAMED = late(r"the (?:field|key) `?([A-Za-z_][A-Za-z0-9_]*)")
_LINE = late(r"\bline (\d+)")
_BYTE = late(r"\bbyte (\d+)")
_ROW = late(
    r"- \d{4}-\d\d-\d\dT[^|]+ \| session=[^|]* \| project=[^|]* \| (?P<sentence>.*?) \[\[(?P<path>[^]|]+)\|(?:summary|"
    r"transcript|compaction)\]\]"
)


def line_of(raw: bytes, code: str, message: str) -> int:
    """Returns the line, from 1, that a person has to look at; 1 if the whole file is meant."""
    if (found := _LINE.search(message)) is not None:
        return min(int(found[1]), raw.count(b"\n") + 1)
    if code == "not-utf8" and (found := _BYTE.search(message)) is not None:
        return raw[: int(found[1])].count(b"\n") + 1
    named = _NAMED.search(message)
    field = named[1] if named is not None else _FIELD.get(code)
    if field is None:
        return 1
    lines = [
        number
        for number, line in enumerate(raw[:65536].split(b"\n"), 1)
        if re.match(rf"\"?{re.escape(field)}\"?\s*:".encode(), line)
    ]
    # A duplicate key is wrong where it occurs again.
    return (lines[-1] if "twice" in message else lines[0]) if lines else 1


def line_of_setting(raw: bytes, message: str) -> int:
    """Returns the line, from 1, of the setting that begins an error message, or that a TOML parser names; else 1."""
    if (found := _LINE.search(message)) is not None:
        return min(int(found[1]), raw.count(b"\n") + 1)
    key = message.partition(" ")[0].rpartition(".")[2]
    assigned = re.compile(rf"[\w.\"' -]*\b{re.escape(key)}[\"']?\s*=".encode())
    return next((number for number, line in enumerate(raw.split(b"\n"), 1) if key and assigned.match(line)), 1)


class PageFault(NamedTuple):
    """A line of a page that is not what it should be."""

    line: int
    code: str
    message: str


def page_faults(data: bytes, sentences_of: Callable[[str], Collection[str]]) -> list[PageFault]:
    """Lists what is wrong with the generated part of a page; empty for a page without one.

    `sentences_of` returns the sentences that a row may show for the artifact at a path, none if there is no valid one.
    """
    if managed_block.BEGIN not in data or managed_block.is_signets(data):
        return []
    begins = data[: data.index(managed_block.BEGIN)].count(b"\n") + 1
    text = managed_block.read_generated(data)
    if text is None:
        return [PageFault(begins, "page-edited", "the part between the marks is not as it was written")]
    found = []
    for number, line in enumerate(text.split("\n"), begins + 1):
        row = _ROW.match(line)
        if row is None:
            continue
        sentences = sentences_of(row["path"])
        if not sentences:
            found.append(PageFault(number, "page-stale", f"it shows {row['path']}, which is no valid artifact"))
        elif row["sentence"] not in sentences:
            found.append(PageFault(number, "page-stale", f"its sentence is not the one of {row['path']}"))
    return found
