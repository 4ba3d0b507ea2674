"""Finds Signet's MCP servers and plug-ins in harnesses; takes servers out of JSON settings and puts them back."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from signet_sync.errors import SignetSyncError
from signet_sync.formats.lazy_pattern import late
from signet_sync.host.harness_settings import (
    claude_code,
    codex,
    document,
    gemini,
    json_text,
    mcp_server,
    mcp_server_json,
    openclaw,
    opencode,
)
from signet_sync.host.harness_settings.condition import Edit
from signet_sync.host.harness_settings.signet_hooks import EMPTY, Removal, difference, sha

_PLACES = {module.NAME: module.servers for module in (claude_code, gemini, opencode)}
HARNESSES = (*_PLACES, codex.NAME)
# Where plug-ins are; their names are recognised by a pattern, because Signet's versions name them differently.
_PLUGINS = ((opencode.folder, ("plugin", "plugins")), (openclaw.folder, ("hooks", "extensions", "plugins")))
_NAME: re.Pattern[str] = late(r"(?<![\w-])signet(?![_-]sync)", re.IGNORECASE)
_WORDS: re.Pattern[str] = late(r"(?<![\w-])signet(?![_-]sync)(?!\w).*\smcp(?:\s|\Z)", re.DOTALL)
# The daemon's own port.
_ADDRESS: re.Pattern[str] = late(r"\Ahttps?://(?:localhost|127\.0\.0\.1|\[::1\]):3850(?:/|\Z)")


@dataclass(frozen=True, slots=True)
class SignetServers:
    """Signet's MCP servers in one file, by name; `by_hand`: they are named, and a person takes them out."""

    harness: str
    path: str
    names: tuple[str, ...] = ()
    by_hand: bool = False
    trouble: str = ""


def found(harness: str, environ: Mapping[str, str]) -> SignetServers:
    """Returns Signet's servers in a harness's settings; `trouble` if these cannot be read."""
    if harness == codex.NAME:
        path, servers = codex.servers(environ)
        return SignetServers(harness, path, tuple(name for name in servers if _is_signets(name, servers[name])), True)
    path, way = _PLACES[harness](environ)
    try:
        text = document.load(path)
        return SignetServers(harness, path, () if text is None else tuple(_entries(text, way, path)))
    except (SignetSyncError, OSError) as error:
        return SignetServers(harness, path, trouble=getattr(error, "message", "") or str(error))


def _entries(text: str, way: tuple[str, ...], path: str) -> dict[str, dict[str, object]]:
    if "signet" not in text.lower() and ":3850" not in text:
        return {}
    value: object = document.parsed(text, path)
    for name in way:
        value = value.get(name) if isinstance(value, dict) else None
    return {name: one for name, one in value.items() if _is_signets(name, one)} if isinstance(value, dict) else {}


def _is_signets(name: str, entry: object) -> bool:
    if not isinstance(entry, dict) or mcp_server.is_ours(words := mcp_server_json.words_of(entry)):
        return False
    address = str(entry.get("url") or entry.get("httpUrl") or "")
    return name.lower() == "signet" or bool(_WORDS.search(" ".join(words)) or _ADDRESS.match(address))


def taking_out(harness: str, environ: Mapping[str, str]) -> tuple[Edit, Removal] | None:
    """Plans to take Signet's servers out of a harness's settings; None if there are none, or only a person may.

    Every other byte stays. Raises `ConfigError`, `OSError`.
    """
    if harness not in _PLACES:
        return None
    path, way = _PLACES[harness](environ)
    before = document.load(path)
    entries = {} if before is None else _entries(before, way, path)
    if before is None or not entries:
        return None
    pieces, text = [], before
    for name in entries:
        rest = json_text.cut(text, mcp_server_json.steps_to(text, (*way, name), path)) or EMPTY
        pieces.append(difference(text, rest))
        text = rest
    removal = Removal(harness, path, sha(before), sha(text), tuple(pieces), (), way, tuple(entries.items()))
    return document.edit(path, before, text), removal


def plugins(environ: Mapping[str, str]) -> list[str]:
    """Returns the files and folders of plug-ins in OpenCode and OpenClaw whose name is Signet's, not ours."""
    places = (os.path.join(folder(environ), name) for folder, names in _PLUGINS for name in names)
    return [os.path.join(place, name) for place in places for name in _listed(place) if _NAME.search(name)]


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
