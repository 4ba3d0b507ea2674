"""Lists entity files by names and stats; opens only folders and follows no symlink."""

from __future__ import annotations

import stat

from signet_sync.formats.entity_paths import FILES, FOLDERS
from signet_sync.formats.paths import AGENT_ID, DEFAULT_AGENT, agent_folder
from signet_sync.formats.snapshot import Signature
from signet_sync.storage import files
from signet_sync.storage.files import Root, reading


def entities_folder(agent_id: str) -> str:
    """Returns the folder of all of an agent's entities, relative to the workspace."""
    return f"{agent_folder(agent_id)}entities"


def possible_agents(root: Root) -> list[str]:
    """Lists agents that may have entities: the default one, and every folder of `agents/` with a valid agent name."""
    named = (name for name in files.listing(root, "agents", "") if AGENT_ID.fullmatch(name))
    return [DEFAULT_AGENT, *(name for name in named if name != DEFAULT_AGENT)]


def agents(root: Root) -> list[str]:
    """Lists agents that have an entities folder, `default` first."""
    return [agent_id for agent_id in possible_agents(root) if has_folder(root, agent_id)]


def has_folder(root: Root, agent_id: str) -> bool:
    """Checks whether an agent has an entities folder."""
    return files.status_of(root, entities_folder(agent_id)) is not None


def scan(root: Root, agent_id: str) -> dict[str, Signature] | None:
    """Returns path and signature of an agent's profiles and notes; None without an entities folder.

    Leaves out what is no regular file or is behind a symlink. Raises `OSError`, `WorkspaceError` if the folder cannot
    be read: an unreadable file must not be taken for a deleted one.
    """
    found: dict[str, Signature] = {}
    where = entities_folder(agent_id)
    try:
        with reading(root, where) as top:
            for kind in FOLDERS.values():
                with top.inside(kind) as entities:
                    for name in entities.names() if entities is not None else ():
                        if not name.isprintable() or entities is None:
                            continue
                        with entities.inside(name) as entity:
                            for file in FILES if entity is not None else ():
                                status = entity.status(f"{file}.md") if entity is not None else None
                                if status is not None and stat.S_ISREG(status.st_mode):
                                    found[f"{where}/{kind}/{name}/{file}.md"] = files.signature_of(status)
    except FileNotFoundError:
        return None
    return found


def log_pages(root: Root, agent_id: str) -> dict[str, Signature]:
    """Returns path and signature of the pages of an agent's event log; reads none of them."""
    where = f"{entities_folder(agent_id)}/ledger"
    return files.signatures(root, [f"{where}/{name}" for name in files.listing(root, where, "")])
