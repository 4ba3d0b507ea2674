"""Changes settings in the text of a workspace's `signet-sync.toml`; every other byte stays."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from signet_sync.errors import ConfigError
from signet_sync.formats.paths import SETTINGS


def with_flags(text: str, section: str, flags: Mapping[str, bool | None]) -> str:
    """Returns the text with some switches of a section set; None takes one out. Raises `ConfigError`."""
    before = _parsed(text)
    wanted = {**before.get(section, {})} if isinstance(before.get(section, {}), dict) else {}
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.splitlines(keepends=True)
    for name, value in flags.items():
        wanted.pop(name, None)
        lines = [line for line, _ in _outside(lines, section, name)]
        if value is not None:
            wanted[name] = value
            lines = _added(lines, section, f"{name} = {'true' if value else 'false'}{newline}", newline)
    after = "".join(lines)
    expected = {**before, section: wanted} if wanted else {k: v for k, v in before.items() if k != section}
    found = _parsed(after)
    if {**found, section: found.get(section, {})} != {**expected, section: expected.get(section, {})}:
        names = ", ".join(
            f"{section}.{name} = {str(value).lower()}" for name, value in flags.items() if value is not None
        )
        raise ConfigError("this file cannot be changed safely", path=SETTINGS, hint=f"set by hand: {names}")
    return after


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            str(error), path=SETTINGS, hint="correct this, then try again; nothing was written"
        ) from error


def _outside(lines: list[str], section: str, name: str) -> list[tuple[str, bool]]:
    """Returns the lines without those that set a switch, each with whether it is in the section."""
    found = []
    inside, top = False, True
    for line in lines:
        table = re.match(r"\s*\[", line)
        if table:
            inside, top = re.match(rf"\s*\[\s*{section}\s*\]\s*(?:#|$)", line) is not None, False
        key = name if inside else rf"{section}\s*\.\s*{name}" if top else None
        if key is None or not re.match(rf"\s*{key}\s*=", line):
            found.append((line, inside))
    return found


def _added(lines: list[str], section: str, line: str, newline: str) -> list[str]:
    """Returns the lines with one more behind the heading of the section, which is added at the end if it is missing."""
    for number, each in enumerate(lines):
        if re.match(rf"\s*\[\s*{section}\s*\]\s*(?:#|$)", each):
            ended = each if each.endswith("\n") else each + newline
            return [*lines[:number], ended, line, *lines[number + 1 :]]
    text = "".join(lines)
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return [*lines, f"{gap}[{section}]{newline}", line]
