"""Finds in one workspace what a request covers, and what else holds its words; writes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from signet_sync.errors import DatabaseError, SignetSyncError
from signet_sync.fleet import workspaces
from signet_sync.fleet.read_only_index import indexed
from signet_sync.fleet.removal import elsewhere, object_store, selection
from signet_sync.fleet.removal.request import RemovalRequest
from signet_sync.formats.snapshot import Signature
from signet_sync.memories.store.session_texts import used_elsewhere
from signet_sync.privacy import quotes, scrub
from signet_sync.privacy.remove import SessionRemoval
from signet_sync.settings import model
from signet_sync.storage import files, state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.storage.remote import RemoteRoot
from signet_sync.sync.workspace import Workspace


class FindRequest(NamedTuple):
    """A workspace, what is looked for, and the time, in microseconds since 1970 UTC."""

    workspace: str
    request: RemovalRequest
    now_us: int


class PlannedFile(NamedTuple):
    """A file of a session, by path, and the state in which it was found; an empty text if it is gone."""

    path: str
    state: str


class PlannedSession(NamedTuple):
    """Sessions of one token: all of them, or those of some ids; and their files."""

    agent_id: str
    session_token: str
    session_ids: tuple[str, ...]
    all_sessions: bool
    files: tuple[PlannedFile, ...]


class Findings(NamedTuple):
    """What was found in a workspace.

    `quoted_in` are artifacts of the same agent's other sessions that quote, `elsewhere` other files of the workspace
    with words of the sessions, and other agents' artifacts. `obstacle` is why nothing can be removed there, and what to
    do instead. `unreachable` is why the workspace could not be read.
    """

    workspace: str
    sessions: tuple[PlannedSession, ...] = ()
    quoted_in: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    obstacle: str = ""
    unreachable: str = ""


def find_one(asked: FindRequest) -> Findings:
    """Looks into one workspace. One that cannot be read is a result, not an error."""
    try:
        with workspaces.opened(asked.workspace) as root, read_only(root, asked.now_us) as workspace:
            removals = selection.selected(workspace, asked.request)
            with own_index(workspace) as known:
                if known is not None:
                    removals = _joined(removals, selection.selected(known, asked.request))
            if not removals:
                return Findings(asked.workspace)
            quoted = quotes.quoted(workspace, removals)
            return Findings(
                asked.workspace,
                tuple(_planned(root, removal) for removal in removals),
                quoted.paths,
                words_elsewhere(workspace, removals),
                object_store.obstacle(root, asked.workspace),
            )
    except (SignetSyncError, OSError) as error:
        return Findings(asked.workspace, unreachable=workspaces.why_not(error))


@contextmanager
def read_only(root: str, now_us: int) -> Iterator[Workspace]:
    """Yields a workspace with an index in memory of what its files say; nothing of it can be written."""
    settings, _ = model.load(root)
    with indexed(root, now_us) as database:
        yield Workspace(root, settings, state_dir.locate(root), database, touch_nothing=True, own_place=False)


@contextmanager
def own_index(workspace: Workspace) -> Iterator[Workspace | None]:
    """Yields the workspace with the index that it has on this machine, read-only; None if there is none to read.

    Only an index knows running sessions, and sessions whose files have vanished.
    """
    place = workspace.state.database
    if isinstance(workspace.root, RemoteRoot) or not os.path.exists(place):
        yield None
        return
    try:
        database = Database(place, readonly=True)
    except (DatabaseError, OSError):  # a removal opens it to write, and then it is repaired
        yield None
        return
    try:
        yield replace(workspace, database=database)
    finally:
        database.connection.close()


def words_elsewhere(workspace: Workspace, removals: Sequence[SessionRemoval]) -> tuple[str, ...]:
    """Returns what contains words of some sessions and is no artifact of their agents: pages, other files, others'."""
    scopes = [removal.scope for removal in removals if removal.sessions]
    if not scopes:
        return ()
    ids = {session_id for removal in removals for session_id in removal.session_ids}
    words = {path.rpartition("/")[2] for removal in removals for path in removal.paths}
    words |= ids - used_elsewhere(workspace.database, scopes, ids)
    found = elsewhere.containing(workspace, scrub.needles_of(workspace.database, words, scopes))
    return tuple(sorted({*found, *quotes.quoted(workspace, removals, by_others=True).paths}))


def _joined(here: Sequence[SessionRemoval], there: Sequence[SessionRemoval]) -> list[SessionRemoval]:
    """Joins what files and index say of the same tokens."""
    found = {(one.agent_id, one.session_token): one for one in here}
    for one in there:
        before = found.get((one.agent_id, one.session_token))
        if before is not None:
            one = replace(
                one,
                sessions=tuple(sorted({*before.sessions, *one.sessions})),
                all_sessions=before.all_sessions or one.all_sessions,
                paths=tuple(sorted({*before.paths, *one.paths})),
            )
        found[one.agent_id, one.session_token] = one
    return [found[key] for key in sorted(found)]


def _planned(root: str, removal: SessionRemoval) -> PlannedSession:
    states = files.signatures(root, removal.paths)
    return PlannedSession(
        removal.agent_id,
        removal.session_token,
        removal.session_ids,
        removal.all_sessions,
        tuple(PlannedFile(path, state_of(states.get(path))) for path in removal.paths),
    )


def state_of(signature: Signature | None) -> str:
    """Returns a file's state as text."""
    return "" if signature is None else "-".join(map(str, signature))
