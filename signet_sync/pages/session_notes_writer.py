"""Writes the session notes that differ from their rows, and removes those of sessions that have none."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from signet_sync.errors import WorkspaceError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.paths import session_note, session_notes_folder
from signet_sync.formats.session_log_rows import LedgerRow
from signet_sync.formats.snapshot import PAGE_LIMIT, Found
from signet_sync.pages import page_files, session_notes
from signet_sync.pages.session_log_stage import SessionLog
from signet_sync.pages.store import pages
from signet_sync.pages.store.pages import PageState
from signet_sync.storage import files, rename
from signet_sync.sync import deriving
from signet_sync.sync.request import Pass
from signet_sync.sync.store import artifacts
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sanitizer import redact

_NAMES = 100


def update(run: Pass, agent_id: str) -> None:
    """Writes the notes of the days that changed or, in a full pass, all that are not as we left them.

    Where Signet's daemon holds pages back, none is created and existing ones are updated. A note keeps its name while
    its sentence changes, unless the name has a secret. Without the setting every note goes.
    """
    workspace, database = run.workspace, run.database
    if deriving.waits(database, workspace.pipeline, SessionLog.name):
        return
    folder = session_notes_folder(agent_id)
    days = None if run.outcome.full else {day for agent, day in run.outcome.change.days if agent == agent_id}
    states: dict[str, PageState] = {}
    for prefix in [f"{folder}/"] if days is None else [f"{folder}/{day[:4]}/{day} " for day in days]:
        states |= pages.page_states_below(database, prefix)
    wanted = workspace.settings.session_notes
    if not (wanted or states or run.outcome.full):
        return
    on_disk = list(_paths(workspace.root, folder, days))
    there = {note: path for path in reversed(on_disk) if (note := session_note(path)) is not None}
    present = files.signatures(workspace.root, on_disk)
    folders: set[str] = set()
    written: dict[str, PageState] = {}
    kept: set[str] = set()
    for day in (pages.days(database, agent_id) if days is None else sorted(days)) if wanted else ():
        for row in pages.day_rows(database, agent_id, day):
            path = there.get((day, session_notes.mark_of(row)))
            if path is None or redact(path)[1]:
                path = session_notes.path_of_note(row)
            kept.add(path)
            before = states.get(path)
            if run.outcome.held and path not in present:
                continue
            if before is None or before.inputs_sha256 == "" or before.signature != present.get(path):
                written[path] = _write(run, row, path, folders)
    gone = (path for path in {*on_disk, *(states if days is None else ())} if path not in kept)
    for path in sorted(gone):
        if path in states or page_files.block_of_ours(workspace.root, path) is not None:
            page_files.withdraw(workspace, _without_words(workspace, path) if wanted else path)
    files.sync_folders(workspace.root, folders)
    if written:
        with database.transaction():
            for path, state in written.items():
                pages.store_page(database, path, state)


def _paths(root: str, folder: str, days: Collection[str] | None) -> Iterator[str]:
    """Yields the notes on disk of some days (None: of all)."""
    for year in sorted(files.listing(root, folder, "") if days is None else {day[:4] for day in days}):
        for name in files.listing(root, f"{folder}/{year}", ""):
            note = session_note(path := f"{folder}/{year}/{name}")
            if note is not None and (days is None or note[0] in days):
                yield path


def _without_words(workspace: Workspace, path: str) -> str:
    """Renames a note that a person has written on, so that its name does not keep the words of its session.

    Returns where it is now. Its block goes afterwards: after a kill the next pass finds the block under the new name.
    """
    found, note = files.read(workspace.root, path, PAGE_LIMIT), session_note(path)
    if note is None or not isinstance(found, Found) or page_files.without_ours(path, found.raw) is None:
        return path
    plain = [f"{note[0]} Note{f' {number}' if number else ''} · {note[1]}.md" for number in range(_NAMES)]
    if path.rpartition("/")[2] in plain:
        return path
    for name in plain:
        if rename.move_away(workspace.root, path, name):
            with workspace.database.transaction():
                pages.forget_page(workspace.database, path)
            return f"{path.rpartition('/')[0]}/{name}"
    raise WorkspaceError("no free name for what you wrote on it", path=path, hint="move it away")


def _write(run: Pass, row: LedgerRow, path: str, folders: set[str]) -> PageState:
    database = run.database
    ((*_, parts),) = artifacts.session_parts(database, [(row.agent_id, row.session_token, row.session_id)])
    stated = {name: pages.stated_by(database, row, aspect) for name, aspect in session_notes.ASPECTS.items()}
    fields = session_notes.properties(row, parts, stated)
    text = session_notes.text(row, fields)
    finish = partial(session_notes.with_properties, fields=fields)
    signature, _ = page_files.write(run.workspace, path, text, run.request.now_us, folders, finish=finish)
    return PageState(row.agent_id, signature, text_sha256(f"{text}\n{sorted(fields.items())}"), None)
