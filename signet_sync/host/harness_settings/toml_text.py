"""Parses TOML documents of other programs, and quotes text for them."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from signet_sync.errors import ConfigError
from signet_sync.settings.model import DOTS_LIMIT


def parsed(text: str, path: str) -> dict[str, Any]:
    """Parses the settings. Raises `ConfigError` with file and line."""
    try:
        return loaded(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"{error}", path=path, hint="correct this, then try again; nothing was written", code="settings-unparsable"
        ) from error


def loaded(text: str) -> dict[str, Any]:
    """Parses the settings. Raises `ValueError`, `RecursionError`."""
    # tomllib needs minutes for a key of some ten thousand parts, and numbers may be too long for Python.
    if any(line.count(".") > DOTS_LIMIT for line in text.split("\n") if "[" in line or "=" in line):
        raise ValueError("a key is nested too deeply")
    return tomllib.loads(text)


def newline(text: str) -> str:
    """Returns the line end of a document."""
    return "\r\n" if "\r\n" in text else "\n"


def quoted(value: str) -> str:
    """Returns a basic string of TOML; JSON writes the same, except that it does not escape DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
