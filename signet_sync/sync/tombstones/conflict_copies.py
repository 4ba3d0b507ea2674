"""Merges conflict copies of tombstones, made when two machines remove at once, so that no removal is lost."""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from signet_sync.errors import WorkspaceError
from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.filename import is_copy_mark, tombstone_name
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import AGENT, TOMBSTONES
from signet_sync.formats.snapshot import TOMBSTONE_LIMIT, Found
from signet_sync.storage import files
from signet_sync.sync import planner
from signet_sync.sync.tombstones import files as tombstones_files
from signet_sync.sync.workspace import Workspace

_COPY = late(rf"{TOMBSTONES}/({AGENT}--[a-z2-7]{{16}})([\W_].*)\.md", re.ASCII)


class Joined(NamedTuple):
    """Tombstones that cover what they and their copies covered, and the copies that are gone now."""

    tombstones: "Mapping[tuple[str, str], Tombstone]"
    gone: frozenset[str]


def take_in(workspace: Workspace, paths: Iterable[str], known: "Mapping[tuple[str, str], Tombstone]") -> Joined:
    """Merges each copy among some paths into the known tombstone, and deletes the copy.

    A copy whose removal an undo has lifted is not merged. If nothing may be written, the copies count and stay.
    """
    tombstones: dict[tuple[str, str], Tombstone] = {}
    gone: set[str] = set()
    for path in sorted(paths):
        match = _COPY.fullmatch(path)
        if match is None or not is_copy_mark(match[2]) or tombstone_name(f"{match[1]}.md") is None:
            continue
        found = files.read(workspace.vault, path, TOMBSTONE_LIMIT)
        tombstone = planner.judge_tombstone(f"{TOMBSTONES}/{match[1]}.md", found)[1]
        if tombstone is None or not isinstance(found, Found):
            continue
        key = tombstone.agent_id, tombstone.session_token
        earlier = tombstones.get(key) or known.get(key)
        lifted = bool(tombstones_files.lifted(workspace.vault, [tombstone]))
        joined = tombstone if earlier is None else earlier.joined(tombstone)
        if not lifted:
            tombstones[key] = joined
        if workspace.touch_nothing:
            continue
        with suppress(OSError, WorkspaceError):  # the next pass tries again
            if not lifted:
                tombstones_files.put(workspace.root, joined)
            if files.retract(workspace.root, path, found.raw):
                gone.add(path)
    return Joined(tombstones, frozenset(gone))
