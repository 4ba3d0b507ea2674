"""Reads what harnesses give to their sessions by themselves: their own memory, and a project's instructions.

They are read when somebody asks, and never written, kept or injected. Nothing that a file says decides what is opened:
only places below a harness's own folders, and folders of sessions as the harness recorded them when we captured them.
"""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import NamedTuple

from signet_sync.capture import store
from signet_sync.capture.harnesses import registry
from signet_sync.formats.body import fix_surrogates
from signet_sync.host.repository import resolve, small_text
from signet_sync.storage.database.connection import Database

_MOST_FILES, _LARGEST = 300, 64 * 1024  # the newest, bytes
_MOST_FOLDERS = 60  # of sessions, the newest


class HarnessFile(NamedTuple):
    """A file of a harness (empty: of a project), when it was changed (µs since 1970), and its text, not sanitized."""

    harness: str
    path: str
    at_us: int
    text: str


def harness_files(database: Database, agent_id: str, root: str) -> Iterator[HarnessFile]:
    """Yields the files that sessions of an agent get from their harnesses, the newest first; none of the workspace's.

    What a harness keeps for all projects is an agent's if no other agent has sessions of this harness.
    """
    seen: dict[str, tuple[int, str]] = {}
    workspace = f"{os.path.realpath(root)}/"
    for harness, path in _paths(database, agent_id):
        with suppress(OSError, ValueError):
            status = os.lstat(path)
            if status.st_size <= _LARGEST and os.path.realpath(path) == path and not path.startswith(workspace):
                seen[path] = (status.st_mtime_ns // 1000, harness)
    newest = sorted(seen.items(), key=lambda one: (-one[1][0], one[0]))
    for path, (at_us, harness) in newest[:_MOST_FILES]:
        with suppress(OSError):
            yield HarnessFile(harness, fix_surrogates(path), at_us, fix_surrogates(small_text(path, _LARGEST) or ""))


def _paths(database: Database, agent_id: str) -> Iterator[tuple[str, str]]:
    """Yields harness and path of what may be such a file."""
    worked: dict[str, None] = {}
    instructions: dict[str, None] = {}
    for harness in registry.names():
        captured = store.folders(database, harness, agent_id)
        if not captured:
            continue
        worked.update((folder, None) for _, folder in captured if folder)
        facts = registry.facts(harness)
        instructions.update(dict.fromkeys(facts.instructions))
        homes = [os.path.realpath(home) for home in facts.homes(os.environ)]
        pairs = dict.fromkeys(captured) if facts.memory_beside else ()
        alone = store.is_alone(database, harness, agent_id)
        own = {os.path.realpath(place) for place, _ in pairs}
        own |= {os.path.realpath(_place_of_top(place, folder)) for place, folder in pairs if alone}
        beside = [one for one in sorted(own) if any(one.startswith(f"{home}/") for home in homes)]
        shared = homes if facts.memory and alone else []
        for folder, patterns in [
            *((one, facts.memory_beside) for one in beside),
            *((one, facts.memory) for one in shared),
        ]:
            for pattern in patterns:
                place, name = os.path.split(os.path.normpath(os.path.join(folder, pattern)))
                with suppress(OSError):
                    yield from ((harness, f"{place}/{one}") for one in os.listdir(place) if fnmatchcase(one, name))
    for folder in [*worked][:_MOST_FOLDERS]:
        found, real = resolve(folder), os.path.realpath(folder)
        top = real.removesuffix(f"/{found.path}") if found is not None and found.path else real
        yield from (("", f"{place}/{name}") for place in dict.fromkeys((real, top)) for name in instructions)


def _place_of_top(place: str, folder: str) -> str:
    """Returns where a harness that names a place after each folder has that of the top of a session's repository."""
    found = resolve(folder) if folder else None
    below = re.sub(r"[^A-Za-z0-9]", "-", f"/{found.path}") if found is not None and found.path else ""
    return place.rstrip("/").removesuffix(below)
