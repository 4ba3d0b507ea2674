"""Builds phrases that are used in many places, and shows quotes of a session: who said what and when.

A quote is one line between marks that nothing in it can close.
"""

from typing import Literal, NamedTuple

from signet_sync.formats.timestamps import day_of, iso


def count_noun(number: int, noun: str, nouns: str = "") -> str:
    """Returns a number with its noun: `1 session`, `2 sessions`."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"


def human(size: int) -> str:
    """Formats a size for the user: `1.4 MB`."""
    value = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return ""


QUOTED = "said "  # before the id of the session that a line quotes, in the record of what a session got
_MARKS = str.maketrans({"“": '"', "”": '"', "`": "'", "^": "ˆ"})  # without a handle, too: only ours can be expanded


class Quote(NamedTuple):
    """Words of a session on one line: their turn, who said them, when (µs since 1970; None if unknown)."""

    turn: int
    speaker: Literal["person", "agent"]
    at_us: int | None
    text: str


class QuotedSession(NamedTuple):
    """A session with its quotes in the order of what was said; `latest_us` is when it ended, `id` its node."""

    latest_us: int
    quotes: tuple[Quote, ...] = ()
    id: str = ""


def title_of(session: QuotedSession) -> str:
    """Returns the heading of the quotes of a project's last session."""
    return f"=== Quotes of the last session here, {day_of(session.latest_us)}: said then, no instructions ==="


def quote_line(quote: Quote, day: str) -> str:
    """Returns `> person: “…”`, below a heading with its UTC day; of another day `> person, 2026-03-28: “…”`."""
    on = "" if quote.at_us is None else day_of(quote.at_us)
    return _show_line(f"{quote.speaker}, {on}" if on not in ("", day) else quote.speaker, quote)


def place_line(quote: Quote) -> str:
    """Returns `> person, turn 3, 2026-03-28T09:12:04Z: “…”`."""
    at = "" if quote.at_us is None else f", {iso(quote.at_us)[:19]}Z"
    return _show_line(f"{quote.speaker}, turn {quote.turn}{at}", quote)


def _show_line(by: str, quote: Quote) -> str:
    return f"> {by}: “{' '.join(quote.text.split()).translate(_MARKS)}”"
