"""Finds other files of a workspace that contain some words, wherever the workspace is."""

from __future__ import annotations

import stat
from collections.abc import Iterator

from signet_sync.formats.filename import artifact_name
from signet_sync.formats.paths import MEMORY, OWN, TOMBSTONES, display
from signet_sync.formats.snapshot import Found
from signet_sync.memories import text_match
from signet_sync.storage.remote import RemoteFolder, RemoteRoot
from signet_sync.storage.safe_paths import reading
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrase_search import Sieve

_LARGEST = 1 << 24  # bytes of a remote file that is looked into


def containing(workspace: Workspace, needles: set[bytes]) -> list[str]:
    """Returns the files that are no artifact and contain one of the needles: pages, kept copies, files of people."""
    root = workspace.root
    if not isinstance(root, RemoteRoot):
        return text_match.foreign_files(workspace, needles, "")
    sieve = Sieve(needles)
    with reading(root, "") as top:
        assert isinstance(top, RemoteFolder)
        return sorted(display(path) for path, raw in _others(root, top, "") if sieve.caught(raw))


def _others(root: RemoteRoot, folder: RemoteFolder, base: str) -> Iterator[tuple[str, bytes]]:
    """Yields path and bytes of every regular file that is not an artifact, a tombstone or in `.signet`."""
    statuses = folder.statuses()
    names = [
        name
        for name, status in statuses.items()
        if stat.S_ISREG(status.st_mode) and not (base == f"{MEMORY}/" and artifact_name(name) is not None)
    ]
    root.reader.read_ahead([f"{base}{name}" for name in names], _LARGEST)
    for name in names:
        found = folder.read(name, _LARGEST)
        if isinstance(found, Found):
            yield f"{base}{name}", found.raw
    for name, status in statuses.items():
        if stat.S_ISDIR(status.st_mode) and name != ".git" and f"{base}{name}" not in (OWN, TOMBSTONES):
            yield from _others(root, folder.inside(name), f"{base}{name}/")
