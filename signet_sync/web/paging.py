"""Splits a long list into portions, numbered from 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

Row = TypeVar("Row")
Shown = TypeVar("Shown")


class Portion(NamedTuple, Generic[Row]):
    """The rows of one portion, its number, the index of its first row, and the total."""

    rows: Sequence[Row]
    number: int
    first: int
    total: int
    size: int

    @property
    def before(self) -> int | None:
        """Returns the number of the previous portion, or None."""
        return self.number - 1 if self.number > 1 else None

    @property
    def after(self) -> int | None:
        """Returns the number of the next portion, or None."""
        return self.number + 1 if self.first + len(self.rows) < self.total else None

    @property
    def label(self) -> str:
        """Returns `61–120 of 300`."""
        return f"{self.first + 1}–{self.first + len(self.rows)} of {self.total}" if self.rows else ""

    def each(self, make: Callable[[Row], Shown]) -> Portion[Shown]:
        """Returns the same portion with each row converted."""
        return Portion([make(row) for row in self.rows], *self[1:])


def portion(rows: Sequence[Row], asked: str | None, size: int) -> Portion[Row]:
    """Returns the portion that a request names, or the nearest that exists."""
    last = max((len(rows) - 1) // size + 1, 1)
    number = int(asked) if asked and asked.isascii() and asked.isdigit() and len(asked) < 8 else 1
    number = min(max(number, 1), last)
    first = (number - 1) * size
    return Portion(rows[first : first + size], number, first, len(rows), size)
