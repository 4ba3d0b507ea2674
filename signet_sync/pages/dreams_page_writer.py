"""Writes DREAMS.md if it differs from the history of promotions."""

from __future__ import annotations

from signet_sync.errors import SignetSyncError, reason
from signet_sync.formats import managed_block
from signet_sync.formats.body import text_sha256
from signet_sync.formats.paths import dream_page
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.memories.store import memories, promotions
from signet_sync.pages import page_files
from signet_sync.pages.dreams_page import diary
from signet_sync.pages.store import pages
from signet_sync.storage import files
from signet_sync.sync.request import Pass, Request
from signet_sync.sync.workspace import Workspace

# Change this when the same rows give a different DREAMS.md.
_VERSION = "3"


def update(run: Pass, agent_id: str) -> None:
    """Makes DREAMS.md equal to the promotion history; without one, only lines of forgotten memories go."""
    workspace, database, path = run.workspace, run.database, dream_page(agent_id)
    history, before = promotions.fingerprint(database, agent_id), pages.page_state(database, path)
    inputs = text_sha256(f"{_VERSION} {history}")
    known = before is not None and before[1:3] == (page_files.signature_at(workspace.root, path), inputs)
    if known and not any(agent == agent_id for agent, _ in memories.forgotten(database)):
        return
    found = files.read(workspace.root, path, PAGE_LIMIT)
    if not history:  # lost, or all of it another machine's
        if isinstance(found, Found):
            gone = [one.encode() for one in page_files.forgotten_on(database, agent_id, found.raw)]
            rest = managed_block.without_lines(found.raw, lambda line: any(one in line for one in gone))
            if rest != found.raw:
                files.replace(workspace.root, path, rest, found.raw)
        return
    folders: set[str] = set()
    text = diary(promotions.sweeps(database, agent_id))
    state, _ = page_files.publish(run, agent_id, path, text, folders, inputs=inputs)
    files.sync_folders(workspace.root, folders)
    with database.transaction():
        pages.store_page(database, path, state)


def remove_forgotten(workspace: Workspace, now_us: int) -> str:
    """Removes forgotten memories from every DREAMS.md, from entries of other machines too.

    Returns why a page that cannot be written now still contains one, or "".
    """
    forgotten = memories.forgotten(workspace.database)
    trouble = ""
    for agent_id in sorted({agent_id for agent_id, _ in forgotten}):
        path = dream_page(agent_id)
        found = files.read(workspace.root, path, PAGE_LIMIT)
        ids = [memory_id.encode() for agent, memory_id in forgotten if agent == agent_id]
        if not (isinstance(found, Found) and any(memory_id in found.raw for memory_id in ids)):
            continue
        try:
            update(Pass(workspace, Request(now_us)), agent_id)
        except (OSError, SignetSyncError) as error:
            trouble = f"{path}: the page could not be written: {reason(error)}"
    return trouble
