"""Accounts for every row of another program: brought, here already, or left and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from signet_sync.text.sanitizer import sanitize_line

# Of what is left for one reason, so many are named.
MOST_NAMED = 5


@dataclass(slots=True)
class Account:
    """What became of the rows of one table or file; `named` are the first that were left, by reason."""

    rows: int = 0
    brought: int = 0
    here: int = 0
    left: Counter[str] = field(default_factory=Counter)
    named: dict[str, list[str]] = field(default_factory=dict)

    @property
    def accounted(self) -> int:
        """Counts the rows of which the report says something."""
        return self.brought + self.here + sum(self.left.values())


@dataclass(slots=True)
class Report:
    """What came from a place, by table or file; `agents` has a line for each agent, `notes` what else is to know."""

    place: str
    dry_run: bool
    accounts: dict[str, Account] = field(default_factory=dict)
    agents: list[dict[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    redactions: Counter[str] = field(default_factory=Counter)
    proposals: int = 0
    pins: int = 0
    reworded: int = 0
    not_read: dict[str, int] = field(default_factory=dict)

    def of(self, name: str) -> Account:
        """Returns the account of a table or file."""
        return self.accounts.setdefault(name, Account())

    def brought(self, name: str, number: int = 1) -> None:
        """Counts rows that are brought."""
        account = self.of(name)
        account.rows += number
        account.brought += number

    def here(self, name: str, number: int = 1) -> None:
        """Counts rows whose words are here already."""
        account = self.of(name)
        account.rows += number
        account.here += number

    def left(self, name: str, why: str, number: int = 1, *, called: str = "") -> None:
        """Counts rows that are left, and why; `called` is the name of one."""
        if number:
            account = self.of(name)
            account.rows += number
            account.left[why] += number
            names = account.named.setdefault(why, []) if called else []
            shown = " ".join(sanitize_line(called).split())[:80]
            if shown and shown not in names and len(names) < MOST_NAMED:
                names.append(shown)

    @property
    def is_new(self) -> bool:
        """Returns whether anything came that was not here."""
        return bool(self.proposals or self.reworded or any(one.brought for one in self.accounts.values()))

    def document(self) -> dict[str, Any]:
        """Returns the JSON document of the report."""
        return {
            "from": self.place,
            "dry_run": self.dry_run,
            "tables": {name: _document(account) for name, account in self.accounts.items()},
            "pinned": self.pins,
            "reworded": self.reworded,
            "proposals": self.proposals,
            "agents": self.agents,
            "not_read": self.not_read,
            "notes": self.notes,
            "redactions": dict(sorted(self.redactions.items())),
        }


def _document(account: Account) -> dict[str, Any]:
    left = dict(sorted(account.left.items()))
    named = dict(sorted(account.named.items()))
    return {"rows": account.rows, "brought": account.brought, "here": account.here, "left": left, "left_named": named}


def lines(report: Report) -> Iterator[str]:
    """Yields the report for a person."""
    wide = max(map(len, report.accounts), default=0)
    for name, account in report.accounts.items():
        counts = {"brought": account.brought, "here already": account.here, "left": sum(account.left.values())}
        said = ", ".join(f"{number:,} {word}" for word, number in counts.items() if number) or "empty"
        yield f"  {name:<{wide}}  {account.rows:>7,}  {said}"
        for why, number in account.left.most_common():
            yield f"  {'':<{wide}}  {number:>7,}  left: {why}{_named(account.named.get(why, ()), number)}"
    more = (
        (report.pins, "pinned"),
        (report.reworded, "worded otherwise since: the new words take the place of those brought before"),
        (report.proposals, "proposals for entity files"),
    )
    for number, what in more:
        if number:
            yield f"  {what}: {number:,}"
    for agent in report.agents:
        yield f"  agent {agent['id']} ({agent['policy']}): {agent['here']}"
    if report.not_read:
        yield f"  not read, because it follows from the rest: {_listed(report.not_read)}"
    for note in report.notes:
        yield f"  {note}"


def _named(names: Sequence[str], number: int) -> str:
    """Returns the names of what was left, and whether there is more."""
    more = ", …" if len(names) == MOST_NAMED < number else ""
    return f" ({', '.join(names)}{more})" if names else ""


def _listed(rows: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in rows.items())
