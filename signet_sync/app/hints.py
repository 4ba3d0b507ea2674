"""Chooses the folders to watch, and which of the paths that the watcher reports are worth a pass."""

from __future__ import annotations

import os
from collections.abc import Iterable

from signet_sync.entities.stage import entities_folder, is_entity_path
from signet_sync.formats.filename import artifact_name, tombstone_name
from signet_sync.formats.paths import DEFAULT_AGENT, MEMORY, TOMBSTONES, WORDS, agent_folder, page_agent
from signet_sync.formats.snapshot import Signature
from signet_sync.pages.store import pages
from signet_sync.storage import files
from signet_sync.sync.store import artifacts
from signet_sync.sync.workspace import Workspace


def list_folders(workspace: Workspace, agents: Iterable[str]) -> list[str]:
    """Returns the folders to watch, as `Watcher` takes them: of the vault, of its agents, and the spool."""
    pages = [agent_folder(agent).rstrip("/") for agent in agents]
    entities = sorted(f"{entities_folder(agent)}/" for agent in {DEFAULT_AGENT, *agents})
    spool = os.path.realpath(workspace.state.spool)
    return ["", MEMORY, TOMBSTONES, WORDS, *filter(None, pages), *entities, spool]


def relevant(workspace: Workspace, hinted: frozenset[str]) -> frozenset[str]:
    """Returns the hinted paths that may matter.

    Left out are other folders, and ignored file names that still exist: another program's database in `memory/` may be
    written all day.
    """
    vault = {path for path in hinted if path.rpartition("/")[0] in (MEMORY, TOMBSTONES)}
    names = {path: path.rpartition("/")[2] for path in vault}
    foreign = [path for path, name in names.items() if artifact_name(name) is None and tombstone_name(name) is None]
    for path, before in artifacts.list_known_files(workspace.database, foreign).items():
        if before.verdict == "ignored" and files.status_of(workspace.root, path):
            vault.remove(path)
    for path in hinted - names.keys():
        words = path == MEMORY or path.startswith(f"{WORDS}/")
        if words or page_agent(path) is not None or is_entity_path(path):
            vault.add(path)
    return frozenset(vault)


def not_written_by_us(workspace: Workspace, heard: frozenset[str]) -> frozenset[str]:
    """Returns the reported paths, except pages and manifests that are as we left them.

    The same signature means the same bytes, as in every pass: a pass over such a path would write nothing.
    """
    database = workspace.database
    known: dict[str, Signature | None] = {}
    for path in heard:
        if page_agent(path) is not None and (state := pages.page_state(database, path)) and state.inputs_sha256:
            known[path] = state.signature
    names = {path: artifact_name(path.rpartition("/")[2]) for path in heard if path.rpartition("/")[0] == MEMORY}
    written = [path for path, name in names.items() if name is not None and name.kind == "manifest"]
    for path, before in artifacts.list_known_files(database, written).items():
        if before.verdict == "indexed":
            known[path] = before.signature
    found = files.signatures(workspace.root, known)
    return frozenset(path for path in heard if known.get(path) is None or found.get(path) != known[path])
