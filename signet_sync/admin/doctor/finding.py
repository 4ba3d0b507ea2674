"""One thing that was looked at: what was found, and what the person does next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look came to.

    `name` is stable, for programs; `remedy` is what to do, a command that can be typed as it stands wherever there is
    one; with `fix` it is safe, and `doctor --fix` does it.
    """

    name: str
    level: Level
    message: str
    remedy: str = ""
    fix: bool = False


def span(seconds: float) -> str:
    """A length of time as a person says it."""
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} seconds"


def fine(name: str, message: str, remedy: str = "") -> Finding:
    """Nothing is wrong; a `remedy` is only a word of advice."""
    return Finding(name, "ok", message, remedy)


def warning(name: str, message: str, remedy: str, *, fix: bool = False) -> Finding:
    """Everything works, but not as well as it could, or not for long."""
    return Finding(name, "warning", message, remedy, fix)


def problem(name: str, message: str, remedy: str, *, fix: bool = False) -> Finding:
    """Something does not work, or its answers are wrong."""
    return Finding(name, "problem", message, remedy, fix)
