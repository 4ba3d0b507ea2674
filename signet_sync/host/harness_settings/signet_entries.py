"""Finds Signet's hooks, MCP servers and plug-ins in harnesses, and plans to take hooks and servers out."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from signet_sync.formats.lazy_pattern import late
from signet_sync.host.harness_settings import files, hook_groups
from signet_sync.host.harness_settings.condition import Edit
from signet_sync.host.harness_settings.program import is_our_server, server_words
from signet_sync.host.harness_settings.registry import HARNESSES

# What Signet's connectors write: `signet hook session-end -H claude-code`, by whatever path; not our own command.
_HOOK: re.Pattern[str] = late(
    r"\bsignet(?![_-]sync).*\shook\s+(?:session-start|user-prompt-submit|pre-compaction|compaction-complete|session-end"
    r"|pre-tool-use|session-checkpoint-extract)\b.*\s(?:-H|--harness)\b",
    re.DOTALL,
)
_SERVER: re.Pattern[str] = late(r"(?<![\w-])signet(?![_-]sync)(?!\w).*\smcp(?:\s|\Z)", re.DOTALL)
# The daemon's own port.
_ADDRESS: re.Pattern[str] = late(r"\Ahttps?://(?:localhost|127\.0\.0\.1|\[::1\]):3850(?:/|\Z)")
# Where plug-ins are; their names are recognised by a pattern, because Signet's versions name them differently.
_PLUGINS = (("opencode", ("plugin", "plugins")), ("openclaw", ("hooks", "extensions", "plugins")))
_PLUGIN: re.Pattern[str] = late(r"(?<![\w-])signet(?![_-]sync)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SignetEntries:
    """What of Signet is in one harness's settings: events that call it, names of its servers, edits without both."""

    edits: tuple[Edit, ...]
    events: tuple[str, ...]
    servers: tuple[str, ...]

    @property
    def words(self) -> str:
        """Returns what is there and where, for a person; empty if there is nothing."""
        found = [f"hooks for {', '.join(self.events)}"] if self.events else []
        found += [f"MCP servers {', '.join(self.servers)}"] if self.servers else []
        places = " and ".join(edit.path for edit in self.edits)
        return f"{' and '.join(found)} in {places}" if found else ""


def found(harness: str, environ: Mapping[str, str]) -> SignetEntries:
    """Returns what of Signet is in a harness's settings, where all else stays. Raises `ConfigError`, `OSError`."""
    texts = {}
    events, names = [], []
    if HARNESSES[harness].hooks:
        path = HARNESSES[harness].path(environ)
        texts[path] = files.opened(path, files.read(path))
        events = [place.event for place in hook_groups.strip(texts[path], _HOOK)]
    if (listed := HARNESSES[harness].servers) is not None:
        path = listed.path(environ)
        raw = files.read(path) or b""
        if path not in texts and (b"signet" in raw.lower() or b":3850" in raw):
            texts[path] = files.opened(path, raw)
        if (settings := texts.get(path)) is not None:
            way = listed.way(settings.data)
            servers = settings.at(way)
            entries = servers.items() if isinstance(servers, dict) else ()
            names = [name for name, entry in entries if _is_signets(name, entry)]
            for name in names:
                settings.remove((*way, name))
    edits = [edit for settings in texts.values() if (edit := settings.edit()).kind != "unchanged"]
    return SignetEntries(tuple(edits), tuple(dict.fromkeys(events)), tuple(names))


def plugins(environ: Mapping[str, str]) -> list[str]:
    """Returns the files and folders of plug-ins in OpenCode and OpenClaw whose name is Signet's, not ours."""
    places = [os.path.join(HARNESSES[harness].folder(environ), name) for harness, names in _PLUGINS for name in names]
    listed = [(place, sorted(os.listdir(place))) for place in places if os.path.isdir(place)]
    return [os.path.join(place, name) for place, names in listed for name in names if _PLUGIN.search(name)]


def _is_signets(name: str, entry: object) -> bool:
    if not isinstance(entry, dict) or is_our_server(words := server_words(entry)):
        return False
    address = str(entry.get("url") or entry.get("httpUrl") or "")
    return name.lower() == "signet" or bool(_SERVER.search(" ".join(words)) or _ADDRESS.match(address))
