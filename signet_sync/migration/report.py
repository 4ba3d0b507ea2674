"""Accounts for every row of another program: brought, here already, or left and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from signet_sync.migration.items import Left


@dataclass(slots=True)
class Account:
    """What became of the rows of one table or file; `is_new`: the last one was not here."""

    is_new: bool = False
    rows: int = 0
    brought: int = 0
    here: int = 0
    left: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Report:
    """What came from a place, by table or file; `notes` say what else is to know.

    `backup` is the path of the backup that was written before the first change, "" where there is no place for one.
    """

    place: str
    dry_run: bool
    accounts: defaultdict[str, Account] = field(default_factory=lambda: defaultdict(Account))
    notes: list[str] = field(default_factory=list)
    redactions: Counter[str] = field(default_factory=Counter)
    backup: str | None = None

    @contextmanager
    def accounted(self, name: str, rows: int = 1) -> Iterator[Account]:
        """Accounts for rows by what becomes of them in the block: new, here already, or (`Left`) left."""
        account = self.accounts[name]
        account.is_new = False
        try:
            yield account
        except Left as why:
            self.left(name, str(why), rows)
        else:
            account.rows += rows
            account.brought += rows * account.is_new
            account.here += rows * (not account.is_new)

    def left(self, name: str, why: str, number: int = 1) -> None:
        """Counts rows that are left, and why."""
        if number:
            account = self.accounts[name]
            account.rows += number
            account.left[why] += number

    @property
    def is_new(self) -> bool:
        """Returns whether anything came that was not here."""
        return any(one.brought for one in self.accounts.values())

    def document(self) -> dict[str, Any]:
        """Returns the JSON document of the report."""
        tables = {
            name: {"rows": one.rows, "brought": one.brought, "here": one.here, "left": dict(sorted(one.left.items()))}
            for name, one in self.accounts.items()
        }
        return {
            "from": self.place,
            "dry_run": self.dry_run,
            "tables": tables,
            "notes": self.notes,
            "redactions": dict(sorted(self.redactions.items())),
            "backup": self.backup or None,
        }

    def lines(self) -> Iterator[str]:
        """Yields the report for a person."""
        wide = max(map(len, self.accounts), default=0)
        for name, one in self.accounts.items():
            counts = {"brought": one.brought, "here already": one.here, "left": sum(one.left.values())}
            said = ", ".join(f"{number:,} {word}" for word, number in counts.items() if number) or "empty"
            yield f"  {name:<{wide}}  {one.rows:>7,}  {said}"
            for why, number in one.left.most_common():
                yield f"  {'':<{wide}}  {number:>7,}  left: {why}"
        for note in self.notes:
            yield f"  {note}"
