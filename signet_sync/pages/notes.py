"""Writes text of ours into notes of a person, and records in which, so that a removal finds its lines there.

The record is in the workspace and a list of paths only; a path counts only if it may be that of a note.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import parse_path
from signet_sync.formats.paths import KEPT_COPY, MEMORY, OWN, page_agent
from signet_sync.formats.snapshot import Found
from signet_sync.pages import page_files
from signet_sync.pages.context import IDENTITIES
from signet_sync.storage import files, state_dir
from signet_sync.sync.read_only import IndexPlace

RECORD = f"{OWN}/notes.json"
_LIMIT = 1 << 20  # bytes
_OURS = (MEMORY, "agents", "entities", "ledger")


def may_be_note(path: str) -> bool:
    """Returns whether a path in the workspace may be that of a person's note: Markdown, with no other purpose."""
    parts = path.split("/")
    return (
        path.endswith(".md")
        and path.isprintable()
        and parts[0] not in _OURS
        and parts[-1] not in IDENTITIES
        and not any(part in ("", "..") or part.startswith(".") for part in parts)
        and page_agent(path) is None
        and parse_path(path) is None
        and KEPT_COPY.fullmatch(path) is None
    )


def record(root: str, path: str) -> None:
    """Adds a note to the record, before it is written. Raises `OSError`, `WorkspaceError`."""
    noted = recorded(root)
    if path in noted:
        return
    found = files.read(root, RECORD, _LIMIT)
    data = json.dumps(sorted({*noted, path}), ensure_ascii=False, indent=1).encode() + b"\n"
    if isinstance(found, Found):
        files.replace(root, RECORD, data, found.raw)
    else:
        files.create_once(root, RECORD, data)


def recorded(root: str) -> list[str]:
    """Returns the notes of the record, in order; what is damaged counts as empty."""
    found = files.read(root, RECORD, _LIMIT)
    try:
        paths = json.loads(found.raw) if isinstance(found, Found) else []
    except (ValueError, RecursionError):
        return []
    return (
        sorted({path for path in paths if isinstance(path, str) and may_be_note(path)})
        if isinstance(paths, list)
        else []
    )


def copies(root: str) -> Iterator[str]:
    """Yields the copies that were kept of text of ours which a person had changed."""
    for path in recorded(root):
        folder, _, name = path.rpartition("/")
        for other in files.listing(root, folder, f"{name.removesuffix('.md')}."):
            copy = f"{folder}/{other}" if folder else other
            if KEPT_COPY.fullmatch(copy):
                yield copy


def write(place: IndexPlace, file: str, text: str, now_us: int) -> tuple[str, bool]:
    """Writes text between our marks into a note of the workspace; what a person wrote around it stays.

    Returns the note's path in the workspace, and whether bytes were written. Raises `UsageError` for a file that is no
    note of a person, `SignetSyncError`, `OSError`.
    """
    path = _note(place.root, file)
    folders: set[str] = set()
    with place.opened() as workspace, state_dir.workspace_lock(workspace.state):
        record(workspace.root, path)
        _, wrote = page_files.write(workspace, path, text, now_us, folders)
        files.sync_folders(workspace.root, folders)
    return path, wrote


def _note(root: str, file: str) -> str:
    """Returns the path of a note in the workspace; a relative one may be from the working folder or the workspace."""
    typed = os.path.expanduser(file)
    paths = (os.path.relpath(os.path.realpath(os.path.join(at, typed)), os.path.realpath(root)) for at in (".", root))
    path = next((one for one in paths if not one.startswith(os.pardir)), None)
    if path is None:
        raise UsageError(
            "the file is not in the workspace",
            path=file,
            hint="name one below it, or redirect the output: > FILE",
            code="outside",
        )
    if not may_be_note(path):
        raise UsageError(
            "this goes into a Markdown note of yours, not into a file with another purpose",
            path=path,
            hint="name a note, such as Daily/2026-03-28.md",
            code="not-a-note",
        )
    return path
