"""Sets up a workspace as a vault of Obsidian, on request, and takes back what is still as it was set up.

What was set is recorded in the state folder, without any text of a person: marks of settings, hashes of files, ids of
entities.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files as packaged
from typing import Any

from signet_sync.errors import SignetSyncError, WorkspaceError
from signet_sync.formats.obsidian_base import BASE, TEXT
from signet_sync.formats.snapshot import Found
from signet_sync.host import obsidian_settings
from signet_sync.host.harness_settings.condition import Edit
from signet_sync.host.obsidian_settings import APP, FOLDER, GRAPH
from signet_sync.host.obsidian_settings import in_words as in_words
from signet_sync.storage import files, state_dir
from signet_sync.storage.state_dir import StateFolder

PLUGIN = f"{FOLDER}/plugins/signet-sync"
PLUGIN_FILES = ("manifest.json", "main.js", "styles.css")
_SETTINGS = (APP, GRAPH)
_LIMIT = 1 << 20  # bytes of a file of Obsidian's
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class ObsidianRecord:
    """What was set up: the marks of each settings file, the hash of each file of ours, entity ids by agent."""

    settings: Mapping[str, list[str]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    entities: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Returns whether nothing was set up."""
        return not (self.settings or self.files or self.entities)


@dataclass(frozen=True, slots=True)
class ObsidianPlan:
    """What would be written: files before and after, paths relative to the workspace.

    `marks` are those of each settings file; `left` are sentences on what stays as it is, and why.
    """

    edits: tuple[Edit, ...]
    marks: Mapping[str, list[str]] = field(default_factory=dict)
    left: tuple[str, ...] = ()

    @property
    def changes(self) -> list[Edit]:
        """Returns the edits that change something."""
        return [edit for edit in self.edits if edit.kind != "unchanged"]


def plan_setup(root: str, state: StateFolder, *, plugin: bool) -> ObsidianPlan:
    """Returns what a setup would write; with `plugin` also the files of the plugin. Writes nothing.

    Raises `ConfigError` for settings that cannot be edited safely, `WorkspaceError`.
    """
    edits, marks, left = [], {}, []
    for path in _SETTINGS:
        before = _read(root, path)
        after, changed = obsidian_settings.with_ours(path, _decoded(path, before))
        edits.append(Edit(path, before, after.encode()))
        marks[path] = changed
    known = record(state).files
    for path, ours in _own_files(plugin):
        before = _read(root, path)
        if before is None or before == ours or sha256(before).hexdigest() == known.get(path):
            edits.append(Edit(path, before, ours))
        else:
            left.append(f"{path} stays as it is: it is yours, or you changed it")
    return ObsidianPlan(tuple(edits), {path: found for path, found in marks.items() if found}, tuple(left))


def plan_undo(root: str, state: StateFolder) -> ObsidianPlan:
    """Returns what taking back would write. Writes nothing. Raises as `plan_setup`."""
    known = record(state)
    edits, left = [], []
    for path, marks in known.settings.items():
        before = _read(root, path)
        if before is not None:
            after = obsidian_settings.without_ours(path, _decoded(path, before) or "", marks)
            edits.append(Edit(path, before, None if after is None else after.encode()))
    for path, ours in known.files.items():
        before = _read(root, path)
        if before is None:
            continue
        if sha256(before).hexdigest() == ours:
            edits.append(Edit(path, before, None))
        else:
            left.append(f"{path} stays: it changed since the setup")
    return ObsidianPlan(tuple(edits), left=tuple(left))


def setup(root: str, state: StateFolder, *, plugin: bool) -> ObsidianPlan:
    """Writes what `plan_setup` says and returns it; what was set is recorded before. The workspace's lock is held.

    Raises as `plan_setup`, and `WorkspaceError` (`busy`) if Obsidian keeps writing the same file.
    """
    for _ in range(_ATTEMPTS):
        plan = plan_setup(root, state, plugin=plugin)
        _note(state, plan)
        if _written(root, plan):
            return plan
    raise _busy()


def undo(root: str, state: StateFolder) -> ObsidianPlan:
    """Takes back what `plan_undo` says and returns it. The workspace's lock is held. Raises as `setup`."""
    for _ in range(_ATTEMPTS):
        plan = plan_undo(root, state)
        if _written(root, plan):
            for edit in plan.edits:
                if edit.after is None:
                    files.remove_empty_folders(root, edit.path.rpartition("/")[0], "")
            _save(state, ObsidianRecord(entities=record(state).entities))
            return plan
    raise _busy()


def missing(root: str, state: StateFolder) -> list[str]:
    """Returns what the setup wrote and is not there any more: paths of files, settings in words."""
    known = record(state)
    gone = [path for path in known.files if _read(root, path) is None]
    for path in known.settings:
        try:
            now = obsidian_settings.with_ours(path, _decoded(path, _read(root, path)))[1]
        except SignetSyncError as error:
            gone.append(f"{path}: {error}")
        else:
            gone += in_words(now)
    return gone


def conditions(root: str, state: StateFolder) -> dict[str, str]:
    """Returns how each file stands that the setup wrote or set something in: words for a person, by path."""
    known = record(state)
    found: dict[str, str] = {}
    for path in known.settings:
        try:
            gone = in_words(obsidian_settings.with_ours(path, _decoded(path, _read(root, path)))[1])
        except SignetSyncError as error:
            found[path] = str(error)
        else:
            found[path] = f"not there any more: {'; '.join(gone)}" if gone else "set, besides what is yours"
    for path, ours in known.files.items():
        now = _read(root, path)
        is_ours = now is not None and sha256(now).hexdigest() == ours
        found[path] = "as it was set up" if is_ours else "changed since, now yours" if now else "not there any more"
    return found


def record(state: StateFolder) -> ObsidianRecord:
    """Returns what was set up; a damaged record counts as none."""
    known = state_dir.read_json(state.obsidian) or {}
    return ObsidianRecord(
        {path: marks for path, marks in _texts(known.get("settings")).items() if path in _SETTINGS},
        {
            path: sha
            for path, sha in _entries(known.get("files"))
            if isinstance(sha, str) and path in dict(_own_files(plugin=True))
        },
        _texts(known.get("entities")),
    )


def note_entities(state: StateFolder, entities: Mapping[str, list[str]]) -> None:
    """Records the ids of entities whose files got speaking names, by agent."""
    known = record(state)
    _save(state, ObsidianRecord(known.settings, known.files, entities))


def _note(state: StateFolder, plan: ObsidianPlan) -> None:
    known = record(state)
    marks = {path: sorted({*known.settings.get(path, ()), *found}) for path, found in plan.marks.items()}
    made = {
        edit.path: sha256(edit.after).hexdigest()
        for edit in plan.edits
        if edit.path not in _SETTINGS and edit.after is not None
    }
    if not marks and made.items() <= known.files.items():
        return
    _save(state, ObsidianRecord({**known.settings, **marks}, {**known.files, **made}, known.entities))


def _save(state: StateFolder, known: ObsidianRecord) -> None:
    value = {"settings": dict(known.settings), "files": dict(known.files), "entities": dict(known.entities)}
    state_dir.write_json(state.obsidian, value, durable=True)


def _written(root: str, plan: ObsidianPlan) -> bool:
    """Writes the edits; returns False if one of the files changed since it was read."""
    for edit in plan.changes:
        if edit.before is None:
            try:
                files.create_once(root, edit.path, edit.after or b"")
            except FileExistsError:
                return False
        elif edit.after is None:
            if not files.retract(root, edit.path, edit.before):
                return False
        elif files.replace(root, edit.path, edit.after, edit.before).displaced is not None:
            return False
    return True


def _own_files(plugin: bool) -> Iterator[tuple[str, bytes]]:
    yield BASE, TEXT.encode()
    if plugin:
        source = packaged("signet_sync.host").joinpath("obsidian_plugin")
        for name in PLUGIN_FILES:
            yield f"{PLUGIN}/{name}", source.joinpath(name).read_bytes()


def _read(root: str, path: str) -> bytes | None:
    """Returns a file's bytes, None if there is none. Raises `WorkspaceError` for anything but a small file."""
    found = files.read(root, path, _LIMIT)
    if isinstance(found, Found):
        return found.raw
    if found.code == "gone":
        return None
    raise WorkspaceError(found.message, path=path, hint="correct this, then try again; nothing was written")


def _decoded(path: str, raw: bytes | None) -> str | None:
    try:
        return None if raw is None else raw.decode("utf-8")
    except UnicodeDecodeError:
        raise WorkspaceError("the file is not UTF-8", path=path, hint="correct this, then try again") from None


def _entries(value: Any) -> list[tuple[str, Any]]:
    return [(str(key), inner) for key, inner in value.items()] if isinstance(value, dict) else []


def _texts(value: Any) -> dict[str, list[str]]:
    return {
        key: [one for one in inner if isinstance(one, str)] for key, inner in _entries(value) if isinstance(inner, list)
    }


def _busy() -> WorkspaceError:
    return WorkspaceError(
        "another program keeps writing the files of Obsidian", hint="close Obsidian, then try again", code="busy"
    )
