"""Evidence: short quotes with tokens of the events that they come from, and the rationale for more than seven."""

from __future__ import annotations

from typing import NamedTuple

CAP = 7
QUOTE_LENGTH = 160  # characters


class Token(NamedTuple):
    """`ev:YYYYMMDDThhmmssZ-ULID` taken apart; `instant` in microseconds since 1970 UTC, as exact as the ULID's."""

    text: str
    ulid: str
    instant: int


class Evidence(NamedTuple):
    """A curated item: what was said, why it matters, the artifact (path relative to the workspace), the event."""

    quote: str
    why: str
    path: str | None
    token: str | None


class Rationale(NamedTuple):
    """Why a soft cap is exceeded, for how long, and the plan to prune back."""

    why: str
    until: str
    plan: str


def ulid_at(instant: int, entropy: bytes) -> str:
    """The ULID of an instant (microseconds since 1970 UTC) and ten random bytes: 26 characters, sorting by time."""
    raise NotImplementedError


def token_for(ulid: str) -> str:
    """The event token of a ULID, its time part the ULID's to the second. Raises `ValueError`."""
    raise NotImplementedError


def read_token(text: str) -> Token | None:
    """A token taken apart; None where it is none, or where its two times differ."""
    raise NotImplementedError


def tokens_in(text: str) -> tuple[Token, ...]:
    """All valid tokens of a text, in order."""
    raise NotImplementedError


def item_text(evidence: Evidence) -> str:
    """The item's text: `"quote" — why [[path|kind]] ev:…`, on one line. Idempotent through `read_item`."""
    raise NotImplementedError


def read_item(text: str) -> Evidence | None:
    """What an item's text says; None where it has not that form."""
    raise NotImplementedError


def read_rationale(text: str) -> Rationale:
    """`why: …; until: …; plan: …` taken apart. Raises `UsageError` (`rationale-invalid`)."""
    raise NotImplementedError
