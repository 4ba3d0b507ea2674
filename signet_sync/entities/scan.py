"""Lists entity files by names and stats; opens only folders and follows no symlink."""

from __future__ import annotations

import stat
from collections.abc import Collection, Iterable, Mapping

from signet_sync.errors import WorkspaceError
from signet_sync.formats.entity_paths import FILES, FOLDERS, File, file_name, read_name, states_id
from signet_sync.formats.paths import AGENT_ID, DEFAULT_AGENT, agent_folder
from signet_sync.formats.snapshot import Found, Signature
from signet_sync.storage import files
from signet_sync.storage.files import Root, Vault, reading

_LIMIT = 1 << 20  # bytes of a file that is read for its first lines


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


def known_bases(paths: Iterable[str]) -> dict[str, str]:
    """Returns by folder what the names of an entity's files begin with, as known paths have it."""
    found: dict[str, str] = {}
    for path in paths:
        where, _, name = path.rpartition("/")
        read = read_name(name)
        if read is not None and (read[0] == "profile" or where not in found):
            found[where] = read[1]
    return found


def base_in(entity: Vault, entity_id: str, known: str | None) -> str | None:
    """Returns what the names of an entity's files begin with in its open folder; None if there is neither of them.

    `profile.md` comes first; then the `known` name, if that file is there; else a file that states the entity's id: a
    person may have renamed it, or have other notes beside it.
    """
    if entity.status(file_name("profile", "")) is not None:
        return ""
    if known and entity.status(file_name("profile", known)) is not None:
        return known
    found = _stating(entity, entity_id)
    if found:
        return min(found, key=lambda one: (one[0] != "profile", len(one[1]), one[1]))[1]
    return "" if entity.status(file_name("notes", "")) is not None else None


def other_notes(root: str, where: str, entity_id: str, base: str) -> str | None:
    """Returns the name of an entity's notes if they do not follow the name of its profile; else None."""
    try:
        with reading(root, where) as entity:
            if entity.status(file_name("notes", base)) is None:
                for name in (file_name("notes", ""), *(file_name(*one) for one in sorted(_stating(entity, entity_id)))):
                    read = read_name(name)
                    if read is not None and read[0] == "notes" and _states(entity, name, entity_id):
                        return name
    except (OSError, WorkspaceError):
        pass
    return None


def bases(root: Root, where: str, names: Collection[str], known: Mapping[str, str]) -> dict[str, str | None]:
    """Returns `base_in` of some entities' folders in `where`; of one that cannot be opened, what is known of it."""
    found: dict[str, str | None] = {}
    try:
        with reading(root, where) as parent:
            for name in names:
                path = f"{where}/{name}"
                try:
                    with parent.inside(name) as entity:
                        found[name] = (
                            base_in(entity, name.rpartition("--")[2], known.get(path)) if entity is not None else None
                        )
                except OSError:
                    found[name] = known.get(path)
    except (OSError, WorkspaceError):
        return {name: known.get(f"{where}/{name}") for name in names}
    return found


def _stating(entity: Vault, entity_id: str) -> list[tuple[File, str]]:
    read = [(name, parts) for name in entity.names() if (parts := read_name(name)) is not None and parts[1]]
    return [parts for name, parts in read if _states(entity, name, entity_id)]


def _states(entity: Vault, name: str, entity_id: str) -> bool:
    found = entity.read(name, _LIMIT)
    return isinstance(found, Found) and states_id(found.raw, entity_id)


def scan(root: Root, agent_id: str, known: Iterable[str] = ()) -> dict[str, Signature] | None:
    """Returns path and signature of an agent's profiles and notes; None without an entities folder.

    `known` are paths where they were before: of these folders no file needs to be read.

    Leaves out what is no regular file or is behind a symlink. Raises `OSError`, `WorkspaceError` if the folder cannot
    be read: an unreadable file must not be taken for a deleted one.
    """
    found: dict[str, Signature] = {}
    where, before = entities_folder(agent_id), known_bases(known)
    try:
        with reading(root, where) as top:
            for kind in FOLDERS.values():
                with top.inside(kind) as entities:
                    if entities is None:
                        continue
                    for name in entities.names():
                        if name.isprintable():
                            _collect(entities, name, f"{where}/{kind}/{name}", before, found)
    except FileNotFoundError:
        return None
    return found


def _collect(entities: Vault, name: str, where: str, known: Mapping[str, str], found: dict[str, Signature]) -> None:
    with entities.inside(name) as entity:
        if entity is None:
            return
        base: str | None = known.get(where, "")
        profile = entity.status(file_name("profile", ""))
        if base and profile is None:
            profile = entity.status(file_name("profile", base))
        elif profile is not None:
            base = ""
        if profile is None:
            base = base_in(entity, name.rpartition("--")[2], None)
            profile = entity.status(file_name("profile", base)) if base else None
        if base is None:
            return
        for file in FILES:
            status = profile if file == "profile" else entity.status(file_name(file, base))
            if status is not None and stat.S_ISREG(status.st_mode):
                found[f"{where}/{file_name(file, base)}"] = files.signature_of(status)


def log_pages(root: Root, agent_id: str) -> dict[str, Signature]:
    """Returns path and signature of the pages of an agent's event log; reads none of them."""
    where = f"{entities_folder(agent_id)}/ledger"
    return files.signatures(root, [f"{where}/{name}" for name in files.listing(root, where, "")])
