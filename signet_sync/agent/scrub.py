"""After a removal no byte of the session's text stays in a file that we write: database, WAL, backups, kept copies."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from signet_sync import journal
from signet_sync.agent.workspace import Workspace, back_up
from signet_sync.contracts.observed import Found
from signet_sync.contracts.places import KEPT_COPY
from signet_sync.errors import WorkspaceError
from signet_sync.index import tombstones
from signet_sync.vault import files

if TYPE_CHECKING:
    from signet_sync.contracts.artifacts import Tombstone


def scrub(workspace: Workspace, now_iso: str) -> None:
    """Empties the WAL, rewrites backups, drops damaged databases that were set aside, cleans kept copies.

    A reader that stands in the way of the WAL leaves the scrub pending: the next pass tries again.
    """
    stones = tombstones.mirrored(workspace.database)
    journal.drop(workspace.state.journal, lambda document: _covered(document, stones))
    clean_kept_copies(workspace, stones)
    back_up(workspace, now_iso, force=True)
    folder = os.path.dirname(workspace.database.path)
    base = os.path.basename(workspace.database.path)
    if workspace.database.path != ":memory:":
        for name in os.listdir(folder):
            if name.startswith(f"{base}.corrupt-"):
                with suppress(OSError):
                    os.unlink(os.path.join(folder, name))
    if not workspace.database.checkpoint(truncate=True):
        return
    with workspace.database.transaction():
        tombstones.mark_scrubbed(workspace.database)
    workspace.database.checkpoint(truncate=True)


def _covered(document: Mapping[str, Any], stones: Sequence[Tombstone]) -> bool:
    token, agent_id, session_id = (document.get(name) for name in ("token", "agent_id", "session_id"))
    return any(stone.session_token == token and stone.covers(agent_id, session_id) for stone in stones)


def clean_kept_copies(workspace: Workspace, stones: list[Tombstone]) -> None:
    """Takes lines that carry a removed session's token, id or files out of the kept copies of displaced pages."""
    needles: set[bytes] = set()
    for stone in stones:
        # Where other sessions of the token stay, the token is theirs too.
        names = {path.rpartition("/")[2] for path in stone.removed_paths} | set(stone.session_ids)
        words = names if stone.session_ids else {stone.session_token}
        needles.update(word.encode("utf-8", "replace") for word in words if len(word) >= 8)
    if not needles:
        return
    for path in kept_copies(workspace.root):
        found = files.read(workspace.root, path, 1 << 28)
        if not isinstance(found, Found):
            continue
        lines = found.raw.split(b"\n")
        left = [line for line in lines if not any(needle in line for needle in needles)]
        if len(left) != len(lines):
            with suppress(OSError, WorkspaceError):
                files.replace(workspace.root, path, b"\n".join(left), found.raw)


def kept_copies(root: str) -> list[str]:
    """Paths of the copies that we kept of displaced pages."""
    found = []
    folders = ["", *(f"agents/{name}" for name in files.listing(root, "agents", ""))]
    for folder in folders:
        for name in files.listing(root, folder, ""):
            path = f"{folder}/{name}" if folder else name
            if KEPT_COPY.fullmatch(path):
                found.append(path)
    for base in folders:
        ledger = f"{base}/ledger" if base else "ledger"
        for year in files.listing(root, ledger, ""):
            for month in files.listing(root, f"{ledger}/{year}", ""):
                for name in files.listing(root, f"{ledger}/{year}/{month}", ""):
                    path = f"{ledger}/{year}/{month}/{name}"
                    if KEPT_COPY.fullmatch(path):
                        found.append(path)
            path = f"{ledger}/{year}"
            if KEPT_COPY.fullmatch(path):
                found.append(path)
    return found
