"""Loads a settings file and makes edits; parses JSON, or explains why it cannot be edited safely."""

from __future__ import annotations

from typing import Any

from signet_sync.errors import ConfigError
from signet_sync.host.harness_settings import files, json_text
from signet_sync.host.harness_settings.condition import Edit


def load(path: str) -> str | None:
    """Returns the text of a settings file, None if there is none. Raises `ConfigError`."""
    raw = files.read(path)
    return None if raw is None else files.text(path, raw)


def edit(path: str, before: str | None, after: str | None) -> Edit:
    """Returns the edit from one text to another; None means that there is no file."""
    return Edit(path, _raw(before), _raw(after))


def _raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def parsed(text: str, path: str) -> dict[str, Any]:
    """Parses a JSON object. Raises `ConfigError` with line and remedy if no edit is safe."""
    try:
        data = json_text.parse(text)
    except json_text.NotJson as error:
        if not text.strip():
            raise unusable(path, "the file is empty", "delete it or write {} into it") from error
        if error.comment:
            what = "a comment; only JSON without comments can be edited safely"
            raise unusable(path, f"line {error.line}: {what}", "remove the comments") from error
        raise unusable(path, f"line {error.line}: {error.message}", "correct this") from error
    if not isinstance(data, dict):
        raise unusable(path, "the file is not a JSON object", "correct this")
    return data


def unusable(path: str, message: str, hint: str) -> ConfigError:
    """Returns the error for settings that are not edited until a person has repaired them."""
    return ConfigError(
        message, path=path, hint=f"{hint}, then try again; nothing was written", code="settings-unparsable"
    )
