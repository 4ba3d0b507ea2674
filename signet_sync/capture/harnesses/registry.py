"""Finds what there is for a harness by its name: its facts, its parser, the settings that we write for it.

The parser is the function `read` of the module of its name, unless its transcripts are like those of another one. What
a session did is read from the names that it gives to tools (`digest.deeds`).
"""

from __future__ import annotations

from importlib import import_module

from signet_sync.capture import harnesses
from signet_sync.capture.harnesses.facts import FACTS
from signet_sync.errors import UsageError

TYPE_CHECKING = False  # same as in `typing`, without importing it
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from signet_sync.capture.harnesses.reader import Conversation
    from signet_sync.host.harness_settings.facts import HarnessFacts
    from signet_sync.host.harness_settings.harness import Harness


def names() -> tuple[str, ...]:
    """Returns the names of all harnesses, sorted."""
    return tuple(sorted(FACTS))


def hooked() -> tuple[str, ...]:
    """Returns the names of those that can call hooks of ours; sessions of the others are imported."""
    return tuple(name for name in names() if FACTS[name].hooks or FACTS[name].scripts)


def facts(name: str) -> HarnessFacts:
    """Returns the facts of a harness. Raises `UsageError` (`harness-unknown`) if there is none of this name."""
    if name not in FACTS:
        raise UsageError(f"no harness of this name; one of: {', '.join(names())}", code="harness-unknown")
    return FACTS[name]


def keeps_database(name: str) -> bool:
    """Returns whether a harness has all sessions in one file; False for an unknown one, as another version may name."""
    return name in FACTS and FACTS[name].keeps_database


def reader(name: str) -> Callable[..., Conversation]:
    """Returns the parser of a harness's transcripts, which takes lines (for OpenCode: rows)."""
    read: Callable[..., Conversation] = _module(facts(name).parser or name).read
    return read


def database(name: str) -> Any:
    """Returns what reads the database of a harness that keeps one: `list_sources` and `read_session`."""
    return _module(f"{name}_database")


def settings(name: str) -> Harness:
    """Returns where a harness has its hooks and MCP servers, and what we write there."""
    from signet_sync.host.harness_settings.harness import Harness  # not for a hook

    return Harness(name, facts(name))


def _module(name: str) -> Any:
    return import_module(f"{harnesses.__name__}.{name.replace('-', '_')}")
