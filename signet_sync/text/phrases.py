"""Builds phrases that are used in many places."""

from __future__ import annotations


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
