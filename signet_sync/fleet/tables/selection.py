"""Says which sessions of the tables are wanted, as conditions of SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Selection(NamedTuple):
    """Which sessions are wanted: of these workspaces (empty: of all), of a project (name, path or origin), an agent.

    Instants in microseconds since 1970 UTC, both included.
    """

    workspaces: Sequence[str] = ()
    project: str | None = None
    agent: str | None = None
    since_us: int | None = None
    until_us: int | None = None
    limit: int = 10


def conditions(wanted: Selection, mark: str, ended_us: str) -> tuple[str, list[object]]:
    """Returns the `where` clause and its values; `mark` stands for a value, `ended_us` gives the end of a session."""
    clauses: list[str] = []
    bound: list[object] = []

    def add(clause: str, *values: object) -> None:
        clauses.append(clause.replace("?", mark))
        bound.extend(values)

    if wanted.workspaces:
        add(f"workspace in ({', '.join('?' * len(wanted.workspaces))})", *wanted.workspaces)
    if wanted.project is not None:
        name = wanted.project.rstrip("/").lower()
        add("(lower(project) = ? or lower(regexp_replace(project, '^.*/', '')) = ?)", name, name)
    if wanted.agent is not None:
        add("agent = ?", wanted.agent)
    if wanted.since_us is not None:
        add(f"{ended_us} >= ?", wanted.since_us)
    if wanted.until_us is not None:
        add(f"{ended_us} <= ?", wanted.until_us)
    return (f" where {' and '.join(clauses)}" if clauses else ""), bound
