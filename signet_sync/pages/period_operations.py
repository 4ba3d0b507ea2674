"""Reads what happened in a period, and writes it into a note of the workspace."""

from __future__ import annotations

import os
from functools import partial

from signet_sync.errors import UsageError
from signet_sync.formats.paths import display
from signet_sync.pages import notes, page_files
from signet_sync.pages.own_project import of_path
from signet_sync.pages.period import PeriodInputs
from signet_sync.pages.store import period_inputs
from signet_sync.pages.store.project_inputs import recorded_origin
from signet_sync.storage import files, state_dir
from signet_sync.sync.read_only import IndexPlace, reading
from signet_sync.text.sentences import basename


def read(
    place: IndexPlace, agent_id: str, from_us: int, to_us: int, project: str | None = None, *, private: bool = True
) -> PeriodInputs:
    """Returns what happened from `from_us` up to, but not at, `to_us`, of all projects or one (name, path or origin).

    Private memories are left out without `private`.

    Raises `UsageError` for a project without sessions, `WorkspaceError`, `DatabaseError`.
    """
    with reading(place) as database:
        belongs = None
        if project is not None:
            _, is_at = of_path(os.path.abspath(project), partial(recorded_origin, database, agent_id))
            names = project.casefold(), project.rstrip("/").casefold()
            known = period_inputs.projects(database, agent_id)
            chosen = {
                one for one in known if one.casefold() in names or basename(one).casefold() in names or is_at(one)
            }
            if not chosen:
                raise UsageError(
                    f"no session belongs to the project {display(project)}",
                    hint=f"known: {', '.join(map(display, known[:8])) or 'none yet'}",
                    code="unknown-project",
                )
            belongs = chosen.__contains__
        return period_inputs.period_inputs(database, agent_id, from_us, to_us, belongs, private=private)


def write(place: IndexPlace, file: str, text: str, now_us: int) -> tuple[str, bool]:
    """Writes text between our marks into a note of the workspace; what a person wrote around it stays.

    Returns the note's path in the workspace, and whether bytes were written. Raises `UsageError` for a file that is no
    note of a person, `SignetSyncError`, `OSError`.
    """
    path = _note(place.root, file)
    folders: set[str] = set()
    with place.opened() as workspace, state_dir.workspace_lock(workspace.state):
        notes.record(workspace.root, path)
        _, wrote = page_files.write(workspace, path, text, now_us, folders)
        files.sync_folders(workspace.root, folders)
    return path, wrote


def _note(root: str, file: str) -> str:
    """Returns the path of a note in the workspace; a relative one may be from the working folder or the workspace."""
    typed = os.path.expanduser(file)
    paths = (os.path.relpath(os.path.realpath(os.path.join(at, typed)), os.path.realpath(root)) for at in (".", root))
    path = next((one for one in paths if not one.startswith(os.pardir)), None)
    if path is None:
        raise UsageError(
            "the file is not in the workspace",
            path=file,
            hint="name one below it, or redirect the output: signet-sync digest > FILE",
            code="outside",
        )
    if not notes.may_be_note(path):
        raise UsageError(
            "a digest goes into a Markdown note of yours, not into a file with another purpose",
            path=path,
            hint="name a note, such as Daily/2026-03-28.md",
            code="not-a-note",
        )
    return path
