"""Describes an event's change of a file by lines: enough to repeat it byte for byte without parsing the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from signet_sync.entities.documents.document import EntityDocument, render

# Keys of a payload: the whole file, or edits with `line` (from 1, in the old file), `drop` (lines) and `text`.
WHOLE, EDITS = "whole", "edits"


def whole(text: str) -> dict[str, Any]:
    """Makes the payload that contains a whole file."""
    return {WHOLE: text}


def change(before: EntityDocument, after: EntityDocument, *, stated: str | None = None) -> dict[str, Any]:
    """Makes the payload that turns one file into the other; it contains the changed lines of each changed part.

    For the section with the anchor `stated` it contains all lines, so that the event log has the whole new text.
    """
    edits = []
    line = 1
    for name, old, new in _pairs(before, after):
        old_lines, new_lines = _lines(old), _lines(new)
        if old != new:
            lead, trail = (0, 0) if name is not None and name == stated else _shared(old_lines, new_lines)
            text = "".join(new_lines[lead : len(new_lines) - trail])
            edits.append({"line": line + lead, "drop": len(old_lines) - lead - trail, "text": text})
        line += len(old_lines)
    payload = {EDITS: edits}
    # A part that does not end with a line end would shift everything after it.
    return payload if apply(render(before), payload) == render(after) else whole(render(after))


def apply(text: str | None, payload: Mapping[str, Any]) -> str | None:
    """Applies a change to a file; returns None if the payload contains none, or does not fit the file."""
    stated, edits = payload.get(WHOLE), payload.get(EDITS)
    if isinstance(stated, str):
        return stated
    if text is None or not isinstance(edits, list):
        return None
    lines = _lines(text)
    for edit in reversed(edits):
        match edit:
            case {"line": int(line), "drop": int(drop), "text": str(new)} if 1 <= line <= line + drop <= len(lines) + 1:
                lines[line - 1 : line - 1 + drop] = [new]
            case _:
                return None
    return "".join(lines)


def _pairs(before: EntityDocument, after: EntityDocument) -> Iterator[tuple[str | None, str, str]]:
    """Yields anchor and text of each part before and after; the whole files if their sections differ."""
    if [section.opening for section in before.sections] != [section.opening for section in after.sections]:
        yield None, render(before), render(after)
        return
    yield None, before.head, after.head
    yield None, before.lead, after.lead
    for old, new in zip(before.sections, after.sections, strict=True):
        yield None, old.opening, new.opening
        yield old.anchor, old.body, new.body


def _lines(text: str) -> list[str]:
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _shared(old: list[str], new: list[str]) -> tuple[int, int]:
    """Counts the lines that both begin with, and those of the rest that both end with."""
    most = min(len(old), len(new))
    lead = next((n for n in range(most) if old[n] != new[n]), most)
    most -= lead
    trail = next((n for n in range(most) if old[-1 - n] != new[-1 - n]), most)
    return lead, trail
