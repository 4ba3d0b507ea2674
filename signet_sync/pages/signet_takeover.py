"""Takes pages over from Signet, or leaves them to it, so that no word of a person is lost either way."""

from __future__ import annotations

from functools import partial

from signet_sync.errors import RevisionConflict, WorkspaceError, reason
from signet_sync.formats import managed_block
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.paths import DEFAULT_AGENT, dream_page, head_page
from signet_sync.formats.signet_page import persons_text
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.pages import page_files, signet_texts
from signet_sync.pages.kept_copies import keep_copy
from signet_sync.storage import files, state_dir
from signet_sync.sync import manifests
from signet_sync.sync.store import bodies, counts
from signet_sync.sync.workspace import Workspace


def keep_pages(workspace: Workspace, now_us: int) -> list[str]:
    """Keeps every page of Signet beside it, before a pass writes ours; returns their paths. Raises `OSError`."""
    done = []
    for path in _head_pages(workspace):
        found = files.read(workspace.root, path, PAGE_LIMIT)
        if isinstance(found, Found) and persons_text(found.raw) is not None:
            signet_texts.keep_page(workspace, path, found.raw, now_us)
            done.append(path)
    return done


def _head_pages(workspace: Workspace) -> list[str]:
    return [head_page(agent_id) for agent_id in sorted({DEFAULT_AGENT, *counts.agents(workspace.database)})]


def put_bodies_back(workspace: Workspace) -> tuple[list[str], list[str]]:
    """Puts texts back into manifests in whose place Signet wrote its own; returns the paths, and what went wrong."""
    done: list[str] = []
    trouble: list[str] = []
    for path, body in bodies.replaced(workspace.database):
        name = artifact_name(path.rpartition("/")[2])
        assert name is not None, "the index has artifacts only"

        def change(fields: dict[str, object], present: str, body: str = body) -> tuple[dict[str, object], str] | None:
            return (fields, f"{body}\n") if present.strip() in bodies.SIGNETS_BODIES else None

        lock = partial(state_dir.session_lock, workspace.state, name.token)
        try:
            if manifests.swap(workspace.root, path, change, lock, limit=workspace.settings.max_file_bytes):
                done.append(path)
        except (OSError, WorkspaceError, RevisionConflict) as error:
            trouble.append(f"{path}: its text could not be put back: {reason(error)}")
    return done, trouble


def leave(workspace: Workspace, now_us: int) -> list[str]:
    """Withdraws the pages that only we write, and keeps what people wrote around our block of MEMORY.md beside it.

    MEMORY.md stays until Signet replaces it, and all that is in it. Returns the paths that changed. Raises `OSError`,
    `SignetSyncError`.
    """
    done = []
    for agent_id in sorted({DEFAULT_AGENT, *counts.agents(workspace.database)}):
        path = head_page(agent_id)
        page = files.read(workspace.root, path, PAGE_LIMIT)
        around = managed_block.around(page.raw) if isinstance(page, Found) else None
        if around is not None and any(map(bytes.strip, around)):
            keep_copy(workspace, path, "user", signet_texts.joined(*around), now_us)
        for own in [*page_files.on_disk(workspace.root, agent_id), dream_page(agent_id)]:
            if own != path and page_files.block_of_ours(workspace.root, own) is not None:
                page_files.withdraw(workspace, own)
                done.append(own)
    return done
