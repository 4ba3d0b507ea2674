"""Finds the harnesses: each package of this folder is one, and nothing else lists them.

It has its `FACTS`; in `transcript` the parser `read`, unless its transcripts are like those of another one; in
`database` what reads one, if the harness keeps one; beside the parser `restore`, if it takes a past session. What a
session did is read from the names that the parser gives to tools (`digest.deeds`).
"""

from __future__ import annotations

from importlib import import_module

from signet_sync.capture import harnesses
from signet_sync.errors import UsageError

TYPE_CHECKING = False  # same as in `typing`, without importing it
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from signet_sync.capture.harnesses.reader import Conversation, Restored
    from signet_sync.host.harness_settings.facts import HarnessFacts
    from signet_sync.host.harness_settings.harness import Harness


def names() -> tuple[str, ...]:
    """Returns the names of all harnesses, sorted."""
    from pkgutil import iter_modules  # a hook knows its harness

    return tuple(sorted(one.name.replace("_", "-") for one in iter_modules(harnesses.__path__) if one.ispkg))


def list_hooked() -> tuple[str, ...]:
    """Returns the names of those that can call hooks of ours; sessions of the others are imported."""
    return tuple(name for name in names() if (known := facts(name)).hooks or known.scripts)


def facts(name: str) -> HarnessFacts:
    """Returns the facts of a harness. Raises `UsageError` (`harness-unknown`) if there is none of this name."""
    found = _find_facts(name)
    if found is None:
        known = ", ".join(names())
        raise UsageError(f"no harness of this name; one of: {known}", code="harness-unknown")
    return found


def keeps_database(name: str) -> bool:
    """Returns whether a harness has all sessions in one file; False for an unknown one, as another version may name."""
    found = _find_facts(name)
    return found is not None and found.keeps_database


def _find_facts(name: str) -> HarnessFacts | None:
    return getattr(_part(name), "FACTS", None) if name.replace("-", "").isalnum() else None


def reader(name: str) -> Callable[..., Conversation]:
    """Returns the parser of a harness's transcripts, which takes lines (for OpenCode: rows)."""
    read: Callable[..., Conversation] = _part(facts(name).parser or name, ".transcript").read
    return read


def database(name: str) -> Any:
    """Returns what reads the database of a harness that keeps one: `list_sources` and `read_session`."""
    return _part(name, ".database")


def settings(name: str) -> Harness:
    """Returns where a harness has its hooks and MCP servers, and what we write there."""
    from signet_sync.host.harness_settings.harness import Harness  # not for a hook

    return Harness(name, facts(name))


def restorer(name: str) -> Callable[..., Restored] | None:
    """Returns what writes a past session as the harness keeps it, from id, folder and turns; None if nothing does.

    A turn is role, ISO 8601 time and text.
    """
    facts(name)
    return getattr(_part(name, ".transcript"), "restore", None)


def _part(name: str, module: str = "") -> Any:
    try:
        return import_module(f"{harnesses.__name__}.{name.replace('-', '_')}{module}")
    except ModuleNotFoundError:
        return None
