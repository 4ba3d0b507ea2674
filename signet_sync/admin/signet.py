"""Finds the hooks and MCP servers of Signet in harnesses and takes them out; names what only a person may take out."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from signet_sync.capture.harnesses import registry
from signet_sync.errors import SignetSyncError, sentence_of
from signet_sync.formats.lazy_pattern import late
from signet_sync.host.harness_settings import files
from signet_sync.host.harness_settings import harness as harnesses
from signet_sync.host.harness_settings.harness import is_our_server, server_words
from signet_sync.host.harness_settings.settings_text import Edit
from signet_sync.pages.others import daemon_pid

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
_PLUGINS = [("opencode", "plugin"), ("opencode", "plugins")] + [
    ("openclaw", name) for name in ("hooks", "extensions", "plugins")
]
_PLUGIN: re.Pattern[str] = late(r"(?<![\w-])signet(?![_-]sync)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SignetEntries:
    """What of Signet is in one harness's settings: events that call it, all in words, and edits that take it out."""

    edits: tuple[Edit, ...]
    events: tuple[str, ...]
    words: str


def find_entries(harness: str, environ: Mapping[str, str]) -> SignetEntries:
    """Returns what of Signet is in a harness's settings, where all else stays. Raises `ConfigError`, `OSError`."""
    texts = {}
    events, names = [], []
    settled = registry.settings(harness)
    if settled.facts.hooks:
        path = settled.path(environ)
        texts[path] = files.open_settings(path, files.read(path))
        events = [place.event for place in harnesses.strip(texts[path], _HOOK)]
    if settled.facts.servers:
        path = settled.facts.server_file(environ)
        raw = files.read(path) or b""
        if path not in texts and (b"signet" in raw.lower() or b":3850" in raw):
            texts[path] = files.open_settings(path, raw)
        if (settings := texts.get(path)) is not None:
            way = settled.facts.server_way(settings.data)
            servers = settings.at(way)
            entries = servers.items() if isinstance(servers, dict) else ()
            names = [name for name, entry in entries if _is_signets(name, entry)]
            for name in names:
                settings.remove((*way, name))
    edits = [edit for settings in texts.values() if (edit := settings.edit()).kind != "unchanged"]
    events = list(dict.fromkeys(events))
    words = [f"hooks for {', '.join(events)}"] if events else []
    words += [f"MCP servers {', '.join(names)}"] if names else []
    places = " and ".join(edit.path for edit in edits)
    return SignetEntries(tuple(edits), tuple(events), f"{' and '.join(words)} in {places}" if words else "")


def _is_signets(name: str, entry: object) -> bool:
    if not isinstance(entry, dict) or is_our_server(words := server_words(entry)):
        return False
    address = str(entry.get("url") or entry.get("httpUrl") or "")
    return name.lower() == "signet" or bool(_SERVER.search(" ".join(words)) or _ADDRESS.match(address))


@dataclass(slots=True)
class TakenOut:
    """What was taken out of which file, what is left to a person, and what failed: the same command tries it again."""

    done: list[str] = field(default_factory=list)
    by_hand: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """Returns the JSON document of it."""
        return {"taken_out": self.done, "by_hand": self.by_hand, "failed": self.failed}


def there(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Returns a line for each harness that has hooks or servers of Signet."""
    lines = []
    for harness in registry.names():
        with suppress(SignetSyncError, OSError):
            if words := find_entries(harness, environ).words:
                lines.append(f"{harness}: Signet's {words}")
    return lines


def take_out(root: str, environ: Mapping[str, str] = os.environ) -> TakenOut:
    """Takes them out, harness by harness; everything else in the files stays, and a copy of each beside it."""
    result = TakenOut()
    for harness in registry.names():
        try:
            entries = find_entries(harness, environ)
            for edit in entries.edits:
                files.apply(edit)
        except (SignetSyncError, OSError) as error:
            where = f"{error.path}: " if isinstance(error, SignetSyncError) else ""
            result.failed.append(f"{harness}: what it has of Signet is still there: {where}{sentence_of(error)}")
            continue
        if entries.words:
            result.done.append(f"{harness}: taken out are Signet's {entries.words}")
    for place in (os.path.join(registry.settings(name).folder(environ), below) for name, below in _PLUGINS):
        names = sorted(os.listdir(place)) if os.path.isdir(place) else []
        ours = [os.path.join(place, name) for name in names if _PLUGIN.search(name)]
        result.by_hand += [f"delete Signet's plug-in: {path}" for path in ours]
    if (pid := daemon_pid(root)) is not None:
        result.by_hand.append(f"stop Signet's daemon, beside which MEMORY.md and manifests are held back: kill {pid}")
    return result
