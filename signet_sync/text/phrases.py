"""Phrases that many say the same way."""

from __future__ import annotations


def counted(number: int, noun: str, nouns: str = "") -> str:
    """`1 session`, `2 sessions`."""
    return f"{number} {noun if number == 1 else nouns or noun + 's'}"
