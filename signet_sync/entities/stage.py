"""Runs entities in a pass: records people's edits, settles interrupted writes, summarises finished days in change logs.

Files and event logs are compared by their stats; only what changed is opened, and the code that reads it is imported
only then.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from signet_sync.entities import store as entities_store
from signet_sync.errors import UsageError, WorkspaceError
from signet_sync.formats.body import text_sha256
from signet_sync.formats.entity_paths import FILES, FOLDERS, parse_ledger_page, parse_path
from signet_sync.formats.lazy_pattern import late
from signet_sync.formats.paths import AGENT_ID, DEFAULT_AGENT, OF_AGENT, agent_folder
from signet_sync.formats.snapshot import PAGE_LIMIT, Found, Signature
from signet_sync.formats.timestamps import DAY, day_of
from signet_sync.storage import files
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.workspace import Eraser, Maintenance, Pass, Workspace

if TYPE_CHECKING:
    from signet_sync.storage.database.connection import Database

# The folders of entities. A hint about a folder covers all files in it: a folder that appears or disappears takes its
# files along.
_FOLDER = late(rf"{OF_AGENT}entities(?:/(?:user|parts|relationships)(?:/[^/]+)?)?", re.ASCII)


class Entities(Maintenance, Eraser):
    """Updates events and rows of entities after people changed entity files."""

    name = "entities"
    database_only = True

    def due(self, run: Pass) -> bool:
        """Checks whether the pass is full or a hinted path belongs to entities."""
        return run.outcome.full or any(map(is_entity_path, run.request.paths or ()))

    def run(self, run: Pass) -> None:
        """Records what changed in the files of hinted agents (of a full pass: all); a read-only pass updates the rows.

        A file that is gone or younger than `settle_seconds` is left for one more look, unless it is `confirmed`: a
        person who types saves every few seconds, and a rename takes two steps.
        """
        workspace, request, outcome = run.workspace, run.request, run.outcome
        known, young = entities_store.signatures(workspace.database), request.now_us * 1000
        young -= int(request.settle_seconds * 1e9)
        hinted = set(filter(None, map(_agent_of, request.paths or ())))
        owners = {*agents(workspace.root), *filter(None, map(_agent_of, known))} if outcome.full else hinted
        for agent_id in sorted(owners):
            try:
                moved = _find_moved(workspace.root, agent_id, known)
                if workspace.touch_nothing:
                    _update_rows(workspace, agent_id, moved, request.now_us)
                    continue
                for path, signature in moved.items() if request.settle_seconds > 0 else ():
                    if path not in request.confirmed and (signature is None or signature.ctime_ns >= young):
                        outcome.unsettled |= {path}
                _record_agent(run, agent_id, sorted(moved.keys() - outcome.unsettled))
            except (OSError, UsageError, WorkspaceError) as error:
                outcome.trouble.append(f"the entities of agent {agent_id} were not checked: {error}")
        if outcome.full and known and not workspace.touch_nothing:
            _summarize_days(run)

    def sanitize(self, database: Database) -> None:
        """Marks all rows for a new read of their files, which happens in the same pass."""
        entities_store.forget_signatures(database)


def is_entity_path(path: str) -> bool:
    """Checks whether a hinted path belongs to entities."""
    return _agent_of(path) is not None


def _summarize_days(run: Pass) -> None:
    workspace, yesterday = run.workspace, day_of(run.request.now_us - DAY)
    told = {one: entities_store.read_remembered(workspace.database, one, "told_day") for one in agents(workspace.root)}
    due = [agent_id for agent_id, day in told.items() if day < yesterday]
    if not due:
        return
    from signet_sync.entities import own_edits  # slow import, needed once a day

    try:
        written = own_edits.summarize_days(workspace, due, run.request.now_us)
        for agent_id in set(filter(None, map(_agent_of, written))):
            run.outcome.change.agents.add(agent_id)
            _remember_log(workspace, agent_id)
    except (OSError, UsageError, WorkspaceError) as error:
        run.outcome.trouble.append(f"the daily summaries of entities were not written: {error}")


def has_entities(workspace: Workspace, agent_id: str) -> bool:
    """Checks whether an agent has entities: files, an event log, or rows of former files."""
    return has_folder(workspace.root, agent_id) or bool(entities_store.signatures(workspace.database, agent_id))


def _update_rows(workspace: Workspace, agent_id: str, moved: dict[str, Signature | None], now_us: int) -> None:
    """Updates the rows of changed files, without a signature: the next pass that may write examines the files."""
    if not moved:
        return
    from signet_sync.entities.repository import EntityRepository  # slow import, needed only if an entity changed

    repo = EntityRepository(workspace, agent_id, now_us)
    seen = [repo.read(place) for path in sorted(moved) if (place := parse_path(path)) is not None]
    rows = [repo.row(one)._replace(signature=None) for one in seen if one.document is not None]
    with workspace.database.transaction():
        entities_store.put_files(workspace.database, rows, [path for path in moved if moved[path] is None])


def _agent_of(path: str) -> str | None:
    if "entities" not in path:
        return None
    place, page, folder = parse_path(path), parse_ledger_page(path), _FOLDER.fullmatch(path)
    if page is not None:
        return page[0]
    return place.agent_id if place is not None else (folder[1] or DEFAULT_AGENT) if folder is not None else None


def _find_moved(root: str, agent_id: str, known: dict[str, Signature | None]) -> dict[str, Signature | None]:
    """Returns the signatures of files that changed (None: gone)."""
    mine, present = {path for path in known if _agent_of(path) == agent_id}, _scan(root, agent_id)
    moved: dict[str, Signature | None] = {path: sign for path, sign in present.items() if known.get(path) != sign}
    return moved | dict.fromkeys(mine - present.keys())


def _record_agent(run: Pass, agent_id: str, moved: list[str]) -> None:
    """Records changed files, and an event log that others extended or that a crash left unfinished."""
    workspace, outcome = run.workspace, run.outcome
    database, pages = workspace.database, _log_pages(workspace.root, agent_id)
    if not moved and _fingerprint(pages) == entities_store.read_remembered(database, agent_id, "ledger"):
        return
    if tombstones_store.has_removals(database):
        # Removed text came back, from a backup or another machine: this pass scrubs it again.
        found = [files.read(workspace.root, path, PAGE_LIMIT) for path in (*moved, *pages)]
        named = (tombstones_store.find_named(database, agent_id, one.raw) for one in found if isinstance(one, Found))
        if returned := set[str]().union(*named):
            tombstones_store.reopen(database, agent_id, returned)
    from signet_sync.entities import observe, own_edits  # slow imports, needed only if an entity changed
    from signet_sync.entities.repository import EntityRepository

    repo = EntityRepository(workspace, agent_id, run.request.now_us)
    look = observe.look(repo, {place.id for path in moved if (place := parse_path(path)) is not None})
    if look.changed:
        outcome.change.agents.add(agent_id)
    if look.edited:
        own_edits.update_patterns(repo)
    outcome.trouble += look.notices
    outcome.trouble += [f"{path} differs from its events: signet-sync entity check" for path in look.drifted]
    _remember_log(workspace, agent_id)


def _remember_log(workspace: Workspace, agent_id: str) -> None:
    ledger = _fingerprint(_log_pages(workspace.root, agent_id))
    if entities_store.read_remembered(workspace.database, agent_id, "ledger") != ledger:
        with workspace.database.transaction():
            entities_store.remember(workspace.database, agent_id, "ledger", ledger)


def _fingerprint(pages: dict[str, Signature]) -> str:
    """Returns a fingerprint of an agent's event log; empty where there is none."""
    return text_sha256(repr(sorted(pages.items())))[:16] if pages else ""


# ── by names and stats: only folders are opened, and no symlink is followed ──


def entities_folder(agent_id: str) -> str:
    """Returns the folder of all of an agent's entities, relative to the workspace."""
    return f"{agent_folder(agent_id)}entities"


def agents(root: str) -> list[str]:
    """Lists agents that have an entities folder, `default` first."""
    named = (one for one in files.list_names(root, "agents", "") if AGENT_ID.fullmatch(one) and one != DEFAULT_AGENT)
    return [agent_id for agent_id in (DEFAULT_AGENT, *named) if has_folder(root, agent_id)]


def has_folder(root: str, agent_id: str) -> bool:
    """Checks whether an agent has an entities folder."""
    return files.status_of(root, entities_folder(agent_id)) is not None


def _scan(root: str, agent_id: str) -> dict[str, Signature]:
    """Returns path and signature of an agent's profiles and notes.

    Leaves out what is no regular file or is behind a symlink. Raises `OSError`, `WorkspaceError` if the folder cannot
    be read: an unreadable file must not be taken for a deleted one.
    """
    found: dict[str, Signature] = {}
    where = entities_folder(agent_id)
    with suppress(FileNotFoundError), files.folder(root, where):
        pass
    for kind in FOLDERS.values():
        with suppress(FileNotFoundError, WorkspaceError), files.folder(root, f"{where}/{kind}") as descriptor:
            names = [name for name in os.listdir(descriptor) if name.isprintable()]
            found |= files.signatures(root, [f"{where}/{kind}/{name}/{file}.md" for name in names for file in FILES])
    return found


def _log_pages(root: str, agent_id: str) -> dict[str, Signature]:
    """Returns path and signature of the pages of an agent's event log; reads none of them."""
    where = f"{entities_folder(agent_id)}/ledger"
    return files.signatures(root, [f"{where}/{name}" for name in files.list_names(root, where, "")])
