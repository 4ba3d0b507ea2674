"""Reads a fleet file: the workspaces of a fleet and the folder of its tables, in TOML.

A fleet file may come from anywhere, so that nothing in it runs a program or sends anything.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from signet_sync.errors import ConfigError
from signet_sync.formats.locate import line_of_setting
from signet_sync.host.harness_settings import toml_text

KEYS = {
    "targets": "what the fleet consists of, as on the command line; relative to the file's folder",
    "tables": "the folder of the tables; relative to the file's folder",
}
_LIMIT = 1 << 26


class FleetFile(NamedTuple):
    """The content of a fleet file; `tables` is an absolute path."""

    targets: list[str]
    tables: str | None = None


def read(path: str) -> FleetFile:
    """Reads a fleet file. Raises `ConfigError` with file and line."""
    text = read_text(path)
    found = toml_text.parsed(text, path)
    for key in found:
        if key not in KEYS:
            raise _wrong(path, text, f"{key} is no key of a fleet file", f"keys are: {', '.join(KEYS)}")
    targets, tables = found.get("targets"), found.get("tables")
    if not isinstance(targets, list) or not targets or not all(isinstance(one, str) for one in targets):
        raise _wrong(path, text, "targets must be a list of texts", 'for example: targets = ["/srv/agents/*"]')
    if tables is not None and not isinstance(tables, str):
        raise _wrong(path, text, "tables must be a text", 'for example: tables = "tables"')
    if tables is not None and "://" in tables:
        raise _wrong(path, text, "tables must be a folder: a fleet file sends nothing", "name a URL with --tables")
    folder = os.path.dirname(os.path.abspath(path))
    return FleetFile(targets, None if tables is None else os.path.join(folder, os.path.expanduser(tables)))


def read_text(path: str) -> str:
    """Reads a file with names of workspaces, which may be a pipe. Raises `ConfigError`."""
    try:
        with open(path, "rb") as file:
            raw = file.read(_LIMIT + 1)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path=path, hint="name an existing file") from None
    if len(raw) > _LIMIT:
        raise ConfigError(f"is larger than {_LIMIT:,} bytes", path=path, hint="use globs, or several files")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"line {line} is not UTF-8", path=path, hint="name that workspace by a glob") from None


def _wrong(path: str, text: str, message: str, hint: str) -> ConfigError:
    return ConfigError(f"line {line_of_setting(text.encode(), message)}: {message}", path=path, hint=hint)
