"""Formats days for a person: in English, whatever the machine's language. Pure."""

from __future__ import annotations

from datetime import date

# Not `strftime`, which uses the machine's language.
_MONTHS = "January February March April May June July August September October November December".split()
_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def day_name(day: str) -> str:
    """Returns the same of `YYYY-MM-DD`; what is no day stays as it is."""
    try:
        return called(date.fromisoformat(day))
    except ValueError:
        return day


def called(day: date) -> str:
    """Returns `Saturday, 28 March 2026`."""
    return f"{_WEEKDAYS[day.weekday()]}, {day.day} {_MONTHS[day.month - 1]} {day.year}"
