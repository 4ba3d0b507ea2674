"""Sets what a vault needs in Obsidian's settings: sealed sessions excluded, links left alone, a filter of the graph."""

from __future__ import annotations

import json
from typing import Any

from signet_sync.errors import ConfigError
from signet_sync.formats.paths import MEMORY

APP = ".obsidian/app.json"
GRAPH = ".obsidian/graph.json"

_HIDDEN = f"{MEMORY}/"
_FILTERS, _LINKS, _SEARCH = "userIgnoreFilters", "alwaysUpdateLinks", "search"
_QUERY = f"-path:{_HIDDEN}"


def rewrites_links(app: dict[str, Any]) -> bool:
    """Returns whether Obsidian changes links by itself when a note is renamed, in sealed files, too."""
    return app.get(_LINKS) is True


def hides(app: dict[str, Any], path: str) -> bool:
    """Returns whether a folder (`memory/`), relative to Obsidian's vault, is among the excluded files."""
    filters = app.get(_FILTERS)
    shown = filters if isinstance(filters, list) else []
    return any(isinstance(one, str) and one and path.startswith(one.removeprefix("/")) for one in shown)


def with_ours(path: str, raw: bytes | None) -> tuple[bytes, list[str]]:
    """Returns the bytes of `APP` or `GRAPH` with what we set, and what that changes in words for a person.

    A file that lacks something is written anew as Obsidian itself writes it, with all other settings in their order.
    `raw` is None if there is no such file. Raises `ConfigError` for a file that cannot be read.
    """
    data = {} if raw is None else _parsed(path, raw)
    changes = []
    if path == APP:
        if rewrites_links(data):
            data[_LINKS] = False
            changes.append("Files and links, Automatically update internal links: off")
        if not hides(data, _HIDDEN):
            filters = data.setdefault(_FILTERS, [])
            if not isinstance(filters, list):
                raise _unusable(path, f"`{_FILTERS}` is not a list")
            filters.append(_HIDDEN)
            changes.append(f"Files and links, Excluded files: {_HIDDEN}")
    else:
        search = data.get(_SEARCH) or ""
        if not isinstance(search, str):
            raise _unusable(path, f"`{_SEARCH}` is not a text")
        if f"path:{_HIDDEN}" not in search and f'path:"{_HIDDEN}' not in search:
            data[_SEARCH] = f"{search} {_QUERY}".lstrip()
            changes.append(f"Graph view, Filters: {_QUERY}")
    if raw is not None and not changes:
        return raw, []
    return json.dumps(data, indent=2).encode(), changes


def _parsed(path: str, raw: bytes) -> dict[str, Any]:
    try:
        data = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise _unusable(path, "this is not JSON") from None
    if not isinstance(data, dict):
        raise _unusable(path, "this is not a JSON object")
    return data


def _unusable(path: str, message: str) -> ConfigError:
    return ConfigError(message, path=path, hint="correct this, then try again; nothing was written")
