"""Defines the rows that pages are made of, as the index stores and counts them."""

from typing import NamedTuple


class Part(NamedTuple):
    """What the session log needs of one artifact of a session. Instants in microseconds since 1970 UTC."""

    source_path: str
    source_kind: str
    session_id: str
    session_key: str | None
    project: str | None
    sentence: str | None
    captured_us: int
    membership_us: int
    noise: int


class LedgerRow(NamedTuple):
    """One session as every page shows it; `tokens` is the estimate of `line`."""

    agent_id: str
    session_token: str
    session_id: str
    membership_us: int
    day: str
    line: str
    tokens: int
    project: str | None
    sentence: str
    path: str
    kind: str


class WindowRow(NamedTuple):
    """A line of MEMORY.md's session log: token and id of its session; or no token, for `sessions` headless ones."""

    session: tuple[str, str]
    line: str
    tokens: int
    day: str
    sessions: int = 1


class MonthView(NamedTuple):
    """A month with its number of sessions."""

    month: str
    sessions: int
