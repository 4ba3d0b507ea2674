"""Finds Signet's hooks in the settings of harnesses, takes them out, and puts them back to the byte."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from signet_sync.errors import ConfigError, SignetSyncError
from signet_sync.formats.lazy_pattern import late
from signet_sync.host.harness_settings import claude_code, codex, document, gemini, hook_groups, mcp_server_json
from signet_sync.host.harness_settings.condition import Edit

# What Signet's connectors write: `signet hook session-end -H claude-code`, by whatever path; not our own command.
COMMAND: re.Pattern[str] = late(
    r"\bsignet(?![_-]sync).*\shook\s+(?:session-start|user-prompt-submit|pre-compaction|compaction-complete|session-end"
    r"|pre-tool-use|session-checkpoint-extract)\b.*\s(?:-H|--harness)\b",
    re.DOTALL,
)
_FILES = {module.NAME: module.hooks_path for module in (claude_code, codex, gemini)}
HARNESSES = tuple(_FILES)
EMPTY = "{}\n"


@dataclass(frozen=True, slots=True)
class SignetHooks:
    """Signet's hooks in one file: the events that call it, and what they run."""

    harness: str
    path: str
    events: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Removal:
    """What was taken out of a file: its hash before and after, pieces of text with their places, and groups by event.

    The pieces, put back in reverse order, give the file as it was; for a file that has changed since there are the
    groups, or the MCP servers to which `way` leads.
    """

    harness: str
    path: str
    before_sha256: str
    after_sha256: str
    pieces: tuple[tuple[int, str, str], ...]
    groups: tuple[tuple[str, dict[str, Any]], ...]
    way: tuple[str, ...] = ()
    servers: tuple[tuple[str, dict[str, Any]], ...] = ()

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Removal:
        """Returns a removal as it was saved. Raises `KeyError`, `TypeError`, `ValueError`."""
        pieces = tuple((int(at), str(old), str(new)) for at, old, new in fields["pieces"])
        groups = tuple((str(event), dict(group)) for event, group in fields["groups"])
        before, after = str(fields["before_sha256"]), str(fields["after_sha256"])
        way = tuple(map(str, fields["way"]))
        servers = tuple((str(name), dict(entry)) for name, entry in fields["servers"])
        return cls(str(fields["harness"]), str(fields["path"]), before, after, pieces, groups, way, servers)


def found(harness: str, environ: Mapping[str, str]) -> SignetHooks:
    """Returns Signet's hooks in a harness's settings; `trouble` if these cannot be read."""
    if harness not in _FILES:
        return SignetHooks(harness, "")
    path = _FILES[harness](environ)
    try:
        text = document.load(path)
        places = [] if text is None else hook_groups.places(hook_groups.parsed(text, path), COMMAND)
    except (SignetSyncError, OSError) as error:
        return SignetHooks(harness, path, trouble=getattr(error, "message", "") or str(error))
    events = tuple(dict.fromkeys(place.event for place in places))
    return SignetHooks(harness, path, events, tuple(str(place.own.get("command", "")) for place in places))


def taking_out(harness: str, environ: Mapping[str, str]) -> tuple[Edit, Removal] | None:
    """Plans to take Signet's hooks out of a harness's settings; None if there are none.

    Every other byte stays. A file in which nothing else is left keeps an empty object. Raises `ConfigError`, `OSError`.
    """
    path = _FILES[harness](environ)
    before = document.load(path)
    if before is None:
        return None
    places = hook_groups.places(hook_groups.parsed(before, path), COMMAND)
    if not places:
        return None
    pieces = []
    text = before
    for shorter in hook_groups.steps_without(before, path, COMMAND):
        rest = EMPTY if shorter is None else shorter
        pieces.append(difference(text, rest))
        text = rest
    groups = tuple((place.event, {**place.whole, "hooks": [place.own]}) for place in places)
    edit = document.edit(path, before, text)
    return edit, Removal(harness, path, sha(before), sha(text), tuple(pieces), groups)


def putting_back(removal: Removal) -> Edit:
    """Plans to put hooks or servers of Signet back; into a file that has changed since, as the last of their kind.

    Raises `ConfigError`, `OSError`.
    """
    before = document.load(removal.path)
    text = before
    if text is not None and sha(text) == removal.after_sha256:
        for at, old, new in reversed(removal.pieces):
            text = text[:at] + old + text[at + len(new) :]
        if sha(text) != removal.before_sha256:
            raise ConfigError("what was taken out of it is damaged", path=removal.path, hint=_by_hand(removal))
    elif text is None or sha(text) != removal.before_sha256:
        text = EMPTY if text is None else text
        present = [place.own for place in hook_groups.places(hook_groups.parsed(text, removal.path), COMMAND)]
        for event, group in removal.groups:
            if group["hooks"][0] not in present:
                text = hook_groups.appended(text, event, group, removal.path)
        for name, entry in removal.servers:
            names = (*removal.way, name)
            steps = mcp_server_json.steps_to(text, names, removal.path)
            text = text if len(steps) == len(names) else mcp_server_json.put(text, names, steps, entry)
    return document.edit(removal.path, before, text)


def _by_hand(removal: Removal) -> str:
    return "add by hand: " + "; ".join(
        f"{name}: {json.dumps(value)}" for name, value in removal.groups + removal.servers
    )


def difference(text: str, shorter: str) -> tuple[int, str, str]:
    """Returns where two texts differ, and what each has there."""
    least = min(len(text), len(shorter))
    at = next((i for i in range(least) if text[i] != shorter[i]), least)
    end = next((i for i in range(least - at) if text[-1 - i] != shorter[-1 - i]), least - at)
    return at, text[at : len(text) - end], shorter[at : len(shorter) - end]


def sha(text: str) -> str:
    """Returns the hash by which a file is known again."""
    return sha256(text.encode()).hexdigest()
