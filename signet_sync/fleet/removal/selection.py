"""Finds the sessions of a workspace that a request names, and the files that go with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from signet_sync.fleet.removal import store
from signet_sync.fleet.removal.request import RemovalRequest, folded, pattern_of
from signet_sync.formats.filename import artifact_name, carried_token, is_artifact_path
from signet_sync.formats.paths import MEMORY
from signet_sync.formats.session_token import token_of
from signet_sync.formats.snapshot import Found
from signet_sync.memories.store import session_texts
from signet_sync.privacy.remove import SessionRemoval, session_of
from signet_sync.sessions.store import live
from signet_sync.storage import files
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.removal import Scope
from signet_sync.sync.store.sessions import SessionRef
from signet_sync.sync.workspace import Workspace
from signet_sync.text.sentences import basename


class _Session(NamedTuple):
    """One session, with what it can be named by; `key` is empty where it is unknown."""

    agent_id: str
    token: str
    session_id: str
    key: str = ""


def selected(workspace: Workspace, request: RemovalRequest) -> list[SessionRemoval]:
    """Returns what a request covers: an id one session, a key or token all of the token's, the others whole sessions.

    A name is taken in full, never as a prefix: in another workspace it would mean another session.
    """
    database = workspace.database
    found: dict[tuple[str, str], set[str] | None] = {}
    for agent_id in [request.agent] if request.agent is not None else store.agents(database):
        known = list(_sessions(database, agent_id))
        if request.project:
            some: Iterable[_Session] = _of_project(database, agent_id, known, request.project)
        elif request.phrase:
            some = _with_phrase(database, agent_id, known, request.phrase)
        else:
            wanted = frozenset(request.sessions)
            some = [one for one in known if one.session_id in wanted]
            tokens = wanted | {token_of(agent_id, name) for name in wanted}
            ids = {(one.token, one.session_id) for one in some}
            for one in known:
                if (one.token in tokens or one.key in wanted) and (one.token, one.session_id) not in ids:
                    found[agent_id, one.token] = None
        for one in some:
            known_ids = found.setdefault((agent_id, one.token), set())
            if known_ids is not None:
                known_ids.add(one.session_id)
    return removals(workspace, [(*key, tuple(sorted(ids or ()))) for key, ids in sorted(found.items())])


def removals(workspace: Workspace, scopes: Sequence[Scope]) -> list[SessionRemoval]:
    """Returns the removals of some scopes as far as something of them is there: sessions, and paths of their files.

    A session's files may have two tokens, of its id and of its key: of a scope with ids, those of both are found.
    """
    found: dict[tuple[str, str], set[str]] = {}
    tokens = {(agent_id, token) for agent_id, token, ids in scopes if not ids}
    named = {(agent_id, session_id) for agent_id, _, ids in scopes for session_id in ids}
    for agent_id in {scope[0] for scope in scopes}:
        for one in _sessions(workspace.database, agent_id):
            if (agent_id, one.token) in tokens or (agent_id, one.session_id) in named:
                found.setdefault((agent_id, one.token), set()).add(one.session_id)
    copies = _copies(workspace, {token for _, token in found})
    made = []
    for (agent_id, token), ids in sorted(found.items()):
        # A harness with a constant key adds more sessions under its token: they are not covered.
        everyone = (agent_id, token) in tokens or all(token == token_of(agent_id, one) for one in ids)
        refs = tuple(SessionRef(agent_id, token, session_id, None) for session_id in sorted(ids))
        paths = set(filter(is_artifact_path, store.paths(workspace.database, (agent_id, token, tuple(sorted(ids))))))
        paths |= {path for path, carried, session_id in copies if carried == token and session_id in ids}
        made.append(SessionRemoval(agent_id, token, refs, everyone, tuple(sorted(paths))))
    return made


def _sessions(database: Database, agent_id: str) -> Iterator[_Session]:
    for known in store.sessions(database, agent_id):
        yield _Session(agent_id, *known)
    for running in live.sessions(database, agent_id):
        yield _Session(
            agent_id, token_of(agent_id, running.session_key), running.session_id or running.session_key,
            running.session_key,
        )  # fmt: skip


def _of_project(database: Database, agent_id: str, known: Sequence[_Session], project: str) -> Iterator[_Session]:
    """Yields the sessions of a project by its identity, origin, root or folder; a name without `/` is its last part."""
    wanted = project.strip().rstrip("/").casefold()
    mine: set[tuple[str, str]] = set()
    for session, names in store.projects(database, agent_id):
        called = {name.rstrip("/").casefold() for name in names}
        if wanted in called or ("/" not in wanted and wanted in map(basename, called)):
            mine.add(session)
    yield from (one for one in known if (one.token, one.session_id) in mine)


def _with_phrase(database: Database, agent_id: str, known: Sequence[_Session], phrase: str) -> Iterator[_Session]:
    """Yields the sessions with a phrase in the text of a file, in a field of it, or in a turn of a running session."""
    pattern = pattern_of(phrase)
    mine: set[tuple[str, str]] = set()
    for text in session_texts.artifact_texts_of_others(database, agent_id, ()):
        if text.session not in mine and pattern.search(folded(text.text)):
            mine.add(text.session)
    for session, texts in store.fields(database, agent_id):
        if session not in mine and pattern.search(folded("\n".join(texts))):
            mine.add(session)
    for one in live.sessions(database, agent_id):
        turns = live.transcript(database, agent_id, one.session_key, one.session_id)
        if pattern.search(folded("\n".join(turn.content for turn in turns))):
            mine.add((token_of(agent_id, one.session_key), one.session_id or one.session_key))
    yield from (one for one in known if (one.token, one.session_id) in mine)


def _copies(workspace: Workspace, tokens: set[str]) -> list[tuple[str, str, str | None]]:
    """Returns path, token and session of the copies that sync services made of files with some tokens."""
    found = []
    for name in files.listing(workspace.root, MEMORY, "") if tokens else ():
        token = carried_token(name)
        if token in tokens and artifact_name(name) is None:
            copy = files.read(workspace.root, f"{MEMORY}/{name}", workspace.settings.max_file_bytes)
            if isinstance(copy, Found):
                found.append((f"{MEMORY}/{name}", token, session_of(copy.raw)))
    return found
