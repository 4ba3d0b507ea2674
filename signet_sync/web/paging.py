"""A long list in portions that are numbered from 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

Row = TypeVar("Row")
Shown = TypeVar("Shown")


class Portion(NamedTuple, Generic[Row]):
    """The rows of one portion, its number, and how many rows there are in all."""

    rows: Sequence[Row]
    number: int
    first: int
    total: int
    size: int

    @property
    def before(self) -> int | None:
        """The number of the portion before, if there is one."""
        return self.number - 1 if self.number > 1 else None

    @property
    def after(self) -> int | None:
        """The number of the portion behind, if there is one."""
        return self.number + 1 if self.first + len(self.rows) < self.total else None

    @property
    def told(self) -> str:
        """`61–120 of 300`."""
        return f"{self.first + 1}–{self.first + len(self.rows)} of {self.total}" if self.rows else ""

    def each(self, make: Callable[[Row], Shown]) -> Portion[Shown]:
        """The same portion with something made of each row."""
        return Portion([make(row) for row in self.rows], *self[1:])


def portion(rows: Sequence[Row], asked: str | None, size: int) -> Portion[Row]:
    """The portion that a request names; whatever it says, one that there is."""
    last = max((len(rows) - 1) // size + 1, 1)
    number = int(asked) if asked and asked.isascii() and asked.isdigit() and len(asked) < 8 else 1
    number = min(max(number, 1), last)
    first = (number - 1) * size
    return Portion(rows[first : first + size], number, first, len(rows), size)
