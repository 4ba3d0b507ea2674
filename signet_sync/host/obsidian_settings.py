"""Edits Obsidian's settings of a vault as text; what was added can be taken out again to the byte.

Each edit returns the marks of what it changed: only that is taken out again, not what a person had set before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from signet_sync.formats.paths import MEMORY
from signet_sync.host.harness_settings import json_text
from signet_sync.host.harness_settings.document import parsed, unusable

FOLDER = ".obsidian"
APP = f"{FOLDER}/app.json"
GRAPH = f"{FOLDER}/graph.json"

_HIDDEN = f"{MEMORY}/"
_FILTERS, _LINKS, _SEARCH = "userIgnoreFilters", "alwaysUpdateLinks", "search"
_QUERY = f"-path:{_HIDDEN}"
# What may be marked as changed, and what it means for a person.
CHANGES = {
    "filter": f"Files and links, Excluded files: {_HIDDEN}",
    "links": "Files and links, Automatically update internal links: off",
    "search": f"Graph view, Filters: {_QUERY}",
}


def rewrites_links(app: dict[str, Any]) -> bool:
    """Returns whether Obsidian changes links by itself when a note is renamed, in sealed files, too."""
    return app.get(_LINKS) is True


def hides(app: dict[str, Any], path: str) -> bool:
    """Returns whether a folder (`memory/`), relative to Obsidian's vault, is among the excluded files."""
    filters = app.get(_FILTERS)
    shown = filters if isinstance(filters, list) else []
    return any(isinstance(one, str) and one and path.startswith(one.removeprefix("/")) for one in shown)


def with_ours(path: str, text: str | None) -> tuple[str, list[str]]:
    """Returns the text of `APP` or `GRAPH` with what we set, and the marks of what that changed.

    `text` is None if there is no such file. Raises `ConfigError` if it cannot be edited safely.
    """
    if text is None:
        fresh: dict[str, Any] = {_FILTERS: [_HIDDEN]} if path == APP else {_SEARCH: _QUERY}
        return json_text.new_document(fresh), ["filter" if path == APP else "search"]
    return _app_with_ours(text) if path == APP else _graph_with_ours(text)


def without_ours(path: str, text: str, marks: Collection[str]) -> str | None:
    """Returns the text without what `marks` name, as far as it is still there; None if nothing of a file is left.

    Raises `ConfigError` if it cannot be edited safely.
    """
    data = parsed(text, path)
    start = json_text.root(text)
    if "links" in marks and data.get(_LINKS) is False:
        text = _spliced(text, _member(text, _LINKS), "true")
    if "filter" in marks and isinstance(data.get(_FILTERS), list) and _HIDDEN in data[_FILTERS]:
        member = _member(text, _FILTERS)
        element = next(one for one in json_text.children(text, member.value) if one.data == _HIDDEN)
        return json_text.cut(text, [(start, member), (member.value, element)])
    search = data.get(_SEARCH)
    if "search" in marks and isinstance(search, str) and search.endswith(_QUERY):
        member = _member(text, _SEARCH)
        if search != _QUERY:
            cut = text[member.value : member.end - 1].removesuffix(_QUERY).removesuffix(" ")
            return f"{text[: member.value]}{cut}{text[member.end - 1 :]}"
        if "empty" in marks:
            return _spliced(text, member, '""')
        return json_text.cut(text, [(start, member)])
    return text


def _app_with_ours(text: str) -> tuple[str, list[str]]:
    data = parsed(text, APP)
    marks = []
    if rewrites_links(data):
        text = _spliced(text, _member(text, _LINKS), "false")
        marks.append("links")
    if not hides(data, _HIDDEN):
        filters = data.get(_FILTERS, [])
        if not isinstance(filters, list):
            raise unusable(APP, f"`{_FILTERS}` is not a list", "correct this")
        if _FILTERS in data:
            text = json_text.appended(text, _member(text, _FILTERS).value, _HIDDEN)
        else:
            text = json_text.appended(text, json_text.root(text), [_HIDDEN], _FILTERS)
        marks.append("filter")
    return text, marks


def _graph_with_ours(text: str) -> tuple[str, list[str]]:
    search = parsed(text, GRAPH).get(_SEARCH)
    if search is None or search == "":
        if search is None:
            return json_text.appended(text, json_text.root(text), _QUERY, _SEARCH), ["search"]
        return _spliced(text, _member(text, _SEARCH), f'"{_QUERY}"'), ["search", "empty"]
    if not isinstance(search, str):
        raise unusable(GRAPH, f"`{_SEARCH}` is not a text", "correct this")
    if f"path:{_HIDDEN}" in search or f'path:"{_HIDDEN}' in search:
        return text, []
    end = _member(text, _SEARCH).end - 1
    return f"{text[:end]} {_QUERY}{text[end:]}", ["search"]


def _member(text: str, key: str) -> json_text.Child:
    found = json_text.member(text, json_text.root(text), key)
    assert found is not None
    return found


def _spliced(text: str, child: json_text.Child, value: str) -> str:
    """Replaces a value by another one that is written as it stands: every other byte stays."""
    return text[: child.value] + value + text[child.end :]


def in_words(marks: Iterable[str]) -> list[str]:
    """Returns what the marks mean, for a person."""
    return [CHANGES[mark] for mark in marks if mark in CHANGES]
