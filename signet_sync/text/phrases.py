"""Builds phrases that are used in many places."""

from __future__ import annotations


def counted(number: int, noun: str, nouns: str = "") -> str:
    """Returns a number with its noun: `1 session`, `2 sessions`."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"
