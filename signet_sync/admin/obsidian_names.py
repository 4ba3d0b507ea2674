"""Renames existing entity files so that Obsidian shows what they are about, with the links in a person's notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from signet_sync.admin import obsidian
from signet_sync.entities import speaking_names
from signet_sync.entities.scan import possible_agents
from signet_sync.errors import WorkspaceError
from signet_sync.formats.entity_paths import parse_path
from signet_sync.formats.moved_links import relinked
from signet_sync.formats.paths import MEMORY, page_agent
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.host.harness_settings.condition import Edit
from signet_sync.storage import files
from signet_sync.storage.foreign_files import foreign_files
from signet_sync.sync.workspace import Workspace


@dataclass(frozen=True, slots=True)
class NamesPlan:
    """What would be renamed: ids by agent, former and present paths without `.md`, and the notes whose links follow.

    `earlier` are such paths of a call that was ended before it came to the notes.
    """

    ids: Mapping[str, list[str]]
    moves: Mapping[str, str]
    notes: tuple[Edit, ...]
    earlier: Mapping[str, str]


def plan(workspace: Workspace, *, undo: bool = False) -> NamesPlan:
    """Returns which files would be renamed (`undo`: called as before the setup), and which notes link them."""
    known = obsidian.record(workspace.state).entities
    ids: dict[str, list[str]] = {}
    moves: dict[str, str] = {}
    earlier: dict[str, str] = {}
    for agent_id in possible_agents(workspace.root):
        ours = known.get(agent_id, ())
        plain = speaking_names.plain_named(workspace, agent_id)
        speaking = speaking_names.speaking_named(workspace, agent_id, ours)
        named, done = (speaking, plain) if undo else (plain, speaking)
        if named:
            ids[agent_id] = sorted(named)
        for pairs in named.values():
            moves |= pairs
        for entity_id in done.keys() & ours:
            earlier |= {new: old for old, new in done[entity_id].items()}
    return NamesPlan(ids, moves, _notes(workspace.root, earlier | moves), earlier)


def carry_out(workspace: Workspace, now_us: int, *, links: bool, undo: bool = False) -> NamesPlan:
    """Renames them, and changes the links of notes if a person agreed; returns what was done.

    Ids are recorded before, so that after a kill the rest can be done or taken back. The workspace's lock is held.
    """
    for agent_id in possible_agents(workspace.root):
        speaking_names.look(workspace, agent_id, now_us)
    coming = plan(workspace, undo=undo)
    if not undo and coming.ids:
        known = obsidian.record(workspace.state).entities
        both = {agent: sorted({*known.get(agent, ()), *coming.ids.get(agent, ())}) for agent in {*known, *coming.ids}}
        obsidian.note_entities(workspace.state, both)
    moves: dict[str, str] = {}
    for agent_id, ids in coming.ids.items():
        moves |= speaking_names.name_files(workspace, agent_id, ids, now_us, plain=undo)
    notes: list[Edit] = []
    if links:
        agreed = {edit.path for edit in coming.notes}
        again = _notes(workspace.root, {**coming.earlier, **moves})
        notes = [edit for edit in again if edit.path in agreed and _written(workspace.root, edit)]
    if undo:
        obsidian.note_entities(workspace.state, {})
    return NamesPlan(coming.ids, moves, tuple(notes), coming.earlier)


def _notes(root: str, moves: Mapping[str, str]) -> tuple[Edit, ...]:
    """Returns the notes of a person that link moved files, as they are and as they would be."""
    found = []
    for path in _of_people(root) if moves else ():
        read = files.read(root, path, PAGE_LIMIT)
        if not isinstance(read, Found):
            continue
        try:
            text = read.raw.decode("utf-8")
        except UnicodeDecodeError:
            continue
        after = relinked(text, path, moves)
        if after != text:
            found.append(Edit(path, read.raw, after.encode()))
    return tuple(found)


def _of_people(root: str) -> Iterable[str]:
    """Yields the Markdown files that are neither sessions, pages nor entity files, outside hidden folders."""
    for path, _ in foreign_files(root):
        hidden = path.startswith((".", f"{MEMORY}/")) or "/." in path
        if path.endswith(".md") and not hidden and page_agent(path) is None and parse_path(path) is None:
            yield path


def _written(root: str, edit: Edit) -> bool:
    """Writes a note unless it was saved meanwhile; then its links stay as they are."""
    try:
        return files.replace(root, edit.path, edit.after or b"", edit.before).displaced is None
    except WorkspaceError:
        return False
