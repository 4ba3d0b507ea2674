"""Edits which hooks Codex trusts: tables `[hooks.state."<file>:<event>:<group>:<handler>"]` of its `config.toml`.

The file is edited as text. A table of ours is preceded by one line feed of its own, so that removing it restores the
earlier bytes; a file that was empty keeps that line feed before the first table.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from signet_sync.errors import ConfigError
from signet_sync.host.harness_settings.hook_groups import HandlerPlace
from signet_sync.host.harness_settings.toml_text import loaded, newline, parsed, quoted

_TIMEOUT = 600  # seconds: Codex's default for a handler without one


def trusted_hash(event: str, group: Mapping[str, Any], handler: Mapping[str, Any]) -> str:
    """Returns Codex's hash of a hook when a person trusts it: SHA-256 of its canonical JSON."""
    identity: dict[str, Any] = {
        "event_name": _snake(event),
        "hooks": [
            {
                "type": "command",
                "command": handler["command"],
                "timeout": handler.get("timeout", _TIMEOUT),
                "async": handler.get("async", False),
                **{key: handler[key] for key in ("statusMessage",) if handler.get(key)},
            }
        ],
        **{key: group[key] for key in ("matcher",) if group.get(key)},
    }
    canonical = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def wanted(hooks_path: str, ours: Sequence[HandlerPlace]) -> dict[str, str]:
    """Returns the key and hash of each handler of ours; the key is its position in the file."""
    return {
        f"{hooks_path}:{_snake(place.event)}:{place.group}:{place.handler}": trusted_hash(
            place.event, place.whole, place.own
        )
        for place in ours
    }


def all_trusted(config: Mapping[str, Any], states: Mapping[str, str]) -> bool:
    """Returns whether every hook may run: known by its position, unchanged since, and not disabled."""
    return all(_is_trusted(_states(config).get(key), value) for key, value in states.items())


def written(text: str | None, states: Mapping[str, str], path: str) -> str:
    """Returns the settings with every hook trusted; `text` is None if there are none yet.

    Raises `ConfigError` if the text cannot be edited safely.
    """
    fresh = text is None
    text = text or ""
    before = parsed(text, path)
    known = _states(before)
    stale = [key for key, value in states.items() if key in known and not _is_trusted(known[key], value)]
    result = without(text, stale, path)
    end = newline(text)
    for key, value in states.items():
        if key not in known or key in stale:
            lines = (f"[hooks.state.{quoted(key)}]", "enabled = true", f'trusted_hash = "{value}"', "")
            result += ("" if fresh else end) + end.join(lines)
            fresh = False
    _check(_others(before, states), result, states, path)
    return result


def without(text: str, keys: Iterable[str], path: str) -> str:
    """Returns the settings without the tables of these keys. Raises `ConfigError` if they cannot be removed safely."""
    gone = [key for key in keys if key in text or quoted(key)[1:-1] in text]
    if not gone:
        return text
    before = parsed(text, path)
    result = text
    for key in gone:
        result = _table(key).sub("", result, count=1)
    _check(_others(before, gone), result, (), path)
    return result


def _check(expected: object, text: str, states: Iterable[str], path: str) -> None:
    """Raises `ConfigError` unless every other setting is unchanged and nothing unintended was added."""
    try:
        after = loaded(text)
        safe = _others(after, states) == expected
    except (ValueError, RecursionError):
        safe = False
    if not safe:
        raise ConfigError(
            "the trust of our hooks is written in a way that cannot be edited safely",
            path=path,
            hint="use /hooks inside Codex instead; nothing was written",
            code="settings-unparsable",
        )


def _others(config: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    """Returns the settings without these tables, and without tables that contained only them."""
    gone = set(keys)
    hooks = config.get("hooks")
    if not isinstance(hooks, dict):
        return dict(config)
    rest = {key: value for key, value in _states(config).items() if key not in gone}
    others = {key: value for key, value in hooks.items() if key != "state"} | ({"state": rest} if rest else {})
    top = {key: value for key, value in config.items() if key != "hooks"}
    return top | ({"hooks": others} if others else {})


def _states(config: Mapping[str, Any]) -> dict[str, Any]:
    hooks = config.get("hooks")
    states = hooks.get("state") if isinstance(hooks, dict) else None
    return states if isinstance(states, dict) else {}


def _is_trusted(state: object, value: str) -> bool:
    return isinstance(state, dict) and state.get("trusted_hash") == value and state.get("enabled", True) is True


def _table(key: str) -> re.Pattern[str]:
    written_as = "|".join(re.escape(form) for form in (quoted(key), f"'{key}'"))
    return re.compile(
        rf"(?:\r?\n)?(?:(?<=\n)|\A)\[hooks\.state\.(?:{written_as})\][ \t]*(?:\r?\n|\Z)"
        rf"(?:(?:enabled|trusted_hash)[ \t]*=[^\n]*(?:\n|\Z))*"
    )


def _snake(event: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()
