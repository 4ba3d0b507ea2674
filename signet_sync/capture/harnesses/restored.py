"""Describes a session that is given back to a harness: what happened in it, and what the harness will read."""

from typing import Any, NamedTuple


class PastTurn(NamedTuple):
    """What a `user` or the `assistant` said, and when (ISO 8601)."""

    role: str
    at: str
    text: str


class PastSession(NamedTuple):
    """A session under the id that it gets, and the folder where it goes on; it has a turn at least."""

    id: str
    folder: str
    turns: tuple[PastTurn, ...]


class Restored(NamedTuple):
    """The file of a session, its records, and the command that continues it."""

    path: str
    records: list[dict[str, Any]]
    command: str
