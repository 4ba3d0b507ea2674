"""Changes settings in the text of a settings file; comments, order and everything else stay."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from signet_sync.errors import ConfigError


def with_values(text: str, values: Mapping[str, Any], path: str) -> str:
    """Returns the text with some settings set, by key. Raises `ConfigError`, with the path."""
    import tomlkit  # a large library, needed only here

    if text and not text.endswith("\n"):
        text += "\n"
    wanted = _parsed(text, path)
    by_hand = ", ".join(f"{key} = {_written(value)}" for key, value in values.items())
    unsafe = ConfigError("this file cannot be changed safely", path=path, hint=f"set by hand: {by_hand}")
    document = tomlkit.parse(text)
    for key, value in values.items():
        *tables, name = key.split(".")
        plain: Any = wanted
        table: Any = document
        for step in tables:
            if step not in plain:
                plain[step] = {}
                _add(table, step, tomlkit.table())
            plain, table = plain[step], table[step]
            if not isinstance(plain, dict):
                raise unsafe
        is_new = name not in plain
        plain[name] = list(value) if isinstance(value, tuple) else value
        if is_new:
            _add(table, name, plain[name])
        else:
            table[name] = plain[name]
    after = document.as_string()
    if "\r\n" in text:
        after = after.replace("\r\n", "\n").replace("\n", "\r\n")
    if _filled(_parsed(after, path)) != _filled(wanted):
        raise unsafe
    return after


def _add(table: Any, name: str, value: Any) -> None:
    """Adds a value behind the last one of a table; comments after that belong to the next table."""
    body = getattr(getattr(table, "value", None), "body", [])
    last = max((at for at, (key, _) in enumerate(body, 1) if key is not None), default=len(body))
    after, body[last:] = body[last:], []
    table[name] = value
    body.extend(after)


def _written(value: Any) -> str:
    import tomlkit

    return str(tomlkit.item(list(value) if isinstance(value, tuple) else value).as_string())


def _filled(tree: Any) -> Any:
    """Returns a document without its empty tables, which say nothing."""
    if not isinstance(tree, dict):
        return tree
    return {key: _filled(value) for key, value in tree.items() if value != {}}


def _parsed(text: str, path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(str(error), path=path, hint="correct this, then try again; nothing was written") from error
