"""Computes how two texts differ, line by line, as rows for a person; bounded, however long the texts are."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any, Literal, NamedTuple

Kind = Literal["same", "gone", "new", "skipped"]

CONTEXT = 3  # lines around a change
COMPARED = 1_000  # lines on either side that are compared; with more, all between the first and the last change is one
ROWS = 600
WIDE = 1_200  # characters of a line that are shown


class DiffRow(NamedTuple):
    """A line with its numbers (from 1) in both texts; before a `skipped` one, equal lines are left out."""

    kind: Kind
    before: int | None = None
    after: int | None = None
    text: str = ""


class Differing(NamedTuple):
    """Rows from top to bottom, the total of removed and added lines; `whole`: every change is shown."""

    rows: list[DiffRow]
    gone: int
    new: int
    whole: bool


def differing(before: str, after: str) -> Differing:
    """Returns what changed from one text to another; equal texts have no rows."""
    old, new = before.split("\n"), after.split("\n")
    if old == new:
        return Differing([], 0, 0, whole=True)
    groups: list[list[tuple[Any, int, int, int, int]]]
    if max(len(old), len(new)) > COMPARED:
        head = _alike(old, new)
        tail = _alike(old[head:][::-1], new[head:][::-1])
        first, end, fresh_end = max(head - CONTEXT, 0), len(old) - tail, len(new) - tail
        below = min(tail, CONTEXT)
        groups = [
            [
                ("equal", first, head, first, head),
                ("replace", head, end, head, fresh_end),
                ("equal", end, end + below, fresh_end, fresh_end + below),
            ]
        ]
    else:
        groups = list(SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT))
    rows: list[DiffRow] = []
    gone = came = 0
    for group in groups:
        if group[0][1] or group[0][3]:
            rows.append(DiffRow("skipped"))
        for tag, start, end, fresh, fresh_end in group:
            if tag == "equal":
                rows += [DiffRow("same", at + 1, at + 1 + fresh - start, old[at]) for at in range(start, end)]
                continue
            gone, came = gone + end - start, came + fresh_end - fresh
            rows += [DiffRow("gone", at + 1, None, old[at]) for at in range(start, end)]
            rows += [DiffRow("new", None, at + 1, new[at]) for at in range(fresh, fresh_end)]
    whole = len(rows) <= ROWS and all(len(row.text) <= WIDE for row in rows)
    cut = [row._replace(text=f"{row.text[:WIDE]}…") if len(row.text) > WIDE else row for row in rows[:ROWS]]
    return Differing(cut, gone, came, whole)


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Counts the equal lines at the beginning."""
    shorter = min(len(one), len(other))
    return next((at for at in range(shorter) if one[at] != other[at]), shorter)
