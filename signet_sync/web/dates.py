"""Formats days for a person: in English, whatever the machine's language. Pure."""

from __future__ import annotations

from datetime import date

# Not `strftime`, which uses the machine's language.
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT = 3  # letters of a name


def called(day: date) -> str:
    """Returns `Saturday, 28 March 2026`."""
    return f"{WEEKDAYS[day.weekday()]}, {day.day} {MONTHS[day.month - 1]} {day.year}"


def dated(day: date) -> str:
    """Returns `28 Mar 2026`."""
    return f"{in_year(day)} {day.year}"


def in_year(day: date) -> str:
    """Returns `28 Mar`."""
    return f"{day.day} {month(day)}"


def month(day: date) -> str:
    """Returns `Mar`."""
    return MONTHS[day.month - 1][:_SHORT]


def weekday(day: date) -> str:
    """Returns `Sat`."""
    return WEEKDAYS[day.weekday()][:_SHORT]
