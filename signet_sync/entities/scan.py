"""Lists entity files by names and stats; opens only folders and follows no symlink."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from signet_sync.formats.entity_paths import FILES, FOLDERS
from signet_sync.formats.paths import AGENT_ID, DEFAULT_AGENT, agent_folder
from signet_sync.formats.snapshot import Signature
from signet_sync.storage import files
from signet_sync.storage.durable import FOLDER
from signet_sync.storage.safe_paths import folder

_NAMES = tuple(f"{file}.md" for file in FILES)
_NO_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def entities_folder(agent_id: str) -> str:
    """Returns the folder of all of an agent's entities, relative to the workspace."""
    return f"{agent_folder(agent_id)}entities"


def possible_agents(root: str) -> list[str]:
    """Lists agents that may have entities: the default one, and every folder of `agents/` with a valid agent name."""
    named = (name for name in files.listing(root, "agents", "") if AGENT_ID.fullmatch(name))
    return [DEFAULT_AGENT, *(name for name in named if name != DEFAULT_AGENT)]


def agents(root: str) -> list[str]:
    """Lists agents that have an entities folder, `default` first."""
    return [agent_id for agent_id in possible_agents(root) if has_folder(root, agent_id)]


def has_folder(root: str, agent_id: str) -> bool:
    """Checks whether an agent has an entities folder."""
    return files.status_of(root, entities_folder(agent_id)) is not None


def scan(root: str, agent_id: str) -> dict[str, Signature] | None:
    """Returns path and signature of an agent's profiles and notes; None without an entities folder.

    Leaves out what is no regular file or is behind a symlink. Raises `OSError`, `WorkspaceError` if the folder cannot
    be read: an unreadable file must not be taken for a deleted one.
    """
    found: dict[str, Signature] = {}
    where = entities_folder(agent_id)
    try:
        with folder(root, where) as top:
            for kind in FOLDERS.values():
                with _inside(top, kind) as entities:
                    for name in os.listdir(entities) if entities is not None else ():
                        if name.isprintable():
                            _collect(entities, name, f"{where}/{kind}/{name}", found)
    except FileNotFoundError:
        return None
    return found


def _collect(entities: int | None, name: str, where: str, found: dict[str, Signature]) -> None:
    with _inside(entities, name) as entity:
        for file in _NAMES if entity is not None else ():
            try:
                status = os.stat(file, dir_fd=entity, follow_symlinks=False)
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                found[f"{where}/{file}"] = files.signature_of(status)


@contextmanager
def _inside(parent: int | None, name: str) -> Iterator[int | None]:
    """Opens a folder; yields its descriptor, None if there is none of that name."""
    try:
        descriptor = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=parent)
    except OSError as error:
        if error.errno not in _NO_FOLDER:
            raise
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def log_pages(root: str, agent_id: str) -> dict[str, Signature]:
    """Returns path and signature of the pages of an agent's event log; reads none of them."""
    where = f"{entities_folder(agent_id)}/ledger"
    return files.signatures(root, [f"{where}/{name}" for name in files.listing(root, where, "")])
