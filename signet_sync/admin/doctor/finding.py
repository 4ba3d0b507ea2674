"""Describes one finding: what was found, and the user's next step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    `name` is stable, for programs; `remedy` is what to do, a command that can be typed as it is if there is one; with
    `fix` it is safe, and `doctor --fix` does it.
    """

    name: str
    level: Level
    message: str
    remedy: str = ""
    fix: bool = False


def span(seconds: float) -> str:
    """Returns a duration as text for the user."""
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} seconds"


def fine(name: str, message: str, remedy: str = "") -> Finding:
    """Makes a finding without a problem; a `remedy` is only advice."""
    return Finding(name, "ok", message, remedy)


def warning(name: str, message: str, remedy: str, *, fix: bool = False) -> Finding:
    """Makes a finding of something that works, but not as well as it could, or not for long."""
    return Finding(name, "warning", message, remedy, fix)


def problem(name: str, message: str, remedy: str, *, fix: bool = False) -> Finding:
    """Makes a finding of something that does not work, or gives wrong answers."""
    return Finding(name, "problem", message, remedy, fix)
