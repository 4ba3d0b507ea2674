"""Records which notes of a person contain a digest of ours, so that a removal finds its lines there.

The record is in the workspace and a list of paths only; a path counts only if it may be that of a note.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from signet_sync.formats.entity_paths import parse_path
from signet_sync.formats.paths import KEPT_COPY, MEMORY, OWN, page_agent
from signet_sync.formats.snapshot import Found
from signet_sync.pages.context import IDENTITIES
from signet_sync.storage import files

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
    """Yields the copies that were kept of digests which a person had changed."""
    for path in recorded(root):
        folder, _, name = path.rpartition("/")
        for other in files.listing(root, folder, f"{name.removesuffix('.md')}."):
            copy = f"{folder}/{other}" if folder else other
            if KEPT_COPY.fullmatch(copy):
                yield copy
