"""Sets up a workspace as a vault of Obsidian, on request: settings, and a Bases file with views of memory."""

from __future__ import annotations

from dataclasses import dataclass

from signet_sync.errors import WorkspaceError
from signet_sync.formats.obsidian_base import BASE, TEXT
from signet_sync.formats.snapshot import Found
from signet_sync.host import obsidian_settings
from signet_sync.storage import files

_LIMIT = 1 << 20  # bytes of a file of Obsidian's
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class ObsidianEdit:
    """A file that lacks something: its bytes before (None: there is none) and after, and what that sets, in words."""

    path: str
    before: bytes | None
    after: bytes
    changes: tuple[str, ...] = ()


def plan(root: str) -> list[ObsidianEdit]:
    """Returns what a setup would write; writes nothing. A Bases file that is there stays as it is.

    Raises `ConfigError` for settings that cannot be edited safely, `WorkspaceError` for what is no small file.
    """
    edits = []
    for path in (obsidian_settings.APP, obsidian_settings.GRAPH):
        before = _read(root, path)
        after, changes = obsidian_settings.with_ours(path, before)
        if after != before:
            edits.append(ObsidianEdit(path, before, after, tuple(changes)))
    if _read(root, BASE) is None:
        edits.append(ObsidianEdit(BASE, None, TEXT.encode()))
    return edits


def setup(root: str) -> list[ObsidianEdit]:
    """Writes what `plan` says and returns it. The workspace's lock is held.

    Raises as `plan`, and `WorkspaceError` (`busy`) if Obsidian keeps writing the same file.
    """
    for _ in range(_ATTEMPTS):
        edits = plan(root)
        if all(_write(root, edit) for edit in edits):
            return edits
    raise WorkspaceError(
        "another program keeps writing the files of Obsidian", hint="close Obsidian, then try again", code="busy"
    )


def _write(root: str, edit: ObsidianEdit) -> bool:
    """Writes a file; returns False if it changed since it was read."""
    if edit.before is not None:
        return files.replace(root, edit.path, edit.after, edit.before).displaced is None
    try:
        files.create_once(root, edit.path, edit.after)
    except FileExistsError:
        return False
    return True


def _read(root: str, path: str) -> bytes | None:
    found = files.read(root, path, _LIMIT)
    if isinstance(found, Found):
        return found.raw
    if found.code == "gone":
        return None
    raise WorkspaceError(found.message, path=path, hint="correct this, then try again; nothing was written")
