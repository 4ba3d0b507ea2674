"""Privacy removal: tombstone file, mirror, artifact files, rows, scrub, pages, in that order; every step resumes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from signet_sync import state
from signet_sync.agent import reconcile
from signet_sync.agent.workspace import Workspace
from signet_sync.contracts.artifacts import TOMBSTONE_VERSION, Tombstone, validate_tombstone
from signet_sync.contracts.names import artifact_name, carried_token
from signet_sync.contracts.observed import Found
from signet_sync.contracts.places import KEPT_COPY, MEMORY, OWN, TOMBSTONES, page_agent
from signet_sync.contracts.sanitizer import sanitize_line
from signet_sync.contracts.timestamps import iso
from signet_sync.errors import UsageError
from signet_sync.index import sessions, tombstones
from signet_sync.index.sessions import SessionRef
from signet_sync.vault import files, history
from signet_sync.vault import tombstones as tombstone_files

FOREIGN_LIMIT = 1 << 28


@dataclass(frozen=True, slots=True)
class Removal:
    """What a removal covers: sessions of one agent's token, all of them or some; files; words by which it is known."""

    agent_id: str
    session_token: str
    sessions: tuple[SessionRef, ...]
    all_sessions: bool
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Removed:
    """What a removal did."""

    agent_id: str
    session_token: str
    tombstone: str
    removed_paths: tuple[str, ...]
    removed_rows: int
    git_history: str
    foreign: tuple[str, ...]


def plan(workspace: Workspace, agent_id: str, name: str) -> list[Removal]:
    """What `remove NAME` would cover: an id covers its session only, a key or token all sessions of the token.

    Raises `UsageError` where the name means nothing, or several sessions by a mere prefix.
    """
    database = workspace.database
    found = sessions.find(database, agent_id, name, sealed=True)
    if not found:
        raise UsageError(
            f"no session of agent {agent_id} is called {name!r}",
            hint="signet-sync search finds sessions by their words; --agent chooses another agent",
            code="unknown-session",
        )
    by_id = [ref for ref in found if ref.session_id == name]
    if by_id:
        found = by_id
    elif len({ref.session_token for ref in found}) > 1:
        sessions.one(database, agent_id, name)
    removals = []
    for token in sorted({ref.session_token for ref in found}):
        wanted = tuple(ref for ref in found if ref.session_token == token)
        everyone = {
            row[0]
            for row in database.execute(
                "select session_id from memory_artifacts where agent_id = ?1 and session_token = ?2"
                " union select session_id from seals where agent_id = ?1 and session_token = ?2",
                (agent_id, token),
            )
        }
        whole = not by_id or everyone == {ref.session_id for ref in wanted}
        if not by_id and token == name:
            wanted = tuple(SessionRef(agent_id, token, session_id, None) for session_id in sorted(everyone))
        removals.append(Removal(agent_id, token, wanted, whole, tuple(_paths(workspace, agent_id, token, wanted))))
    return removals


def _paths(workspace: Workspace, agent_id: str, token: str, refs: Sequence[SessionRef]) -> list[str]:
    found: set[str] = set()
    for ref in refs:
        for sql in (
            "select source_path from memory_artifacts where agent_id = ? and session_token = ? and session_id = ?",
            "select path from seals where agent_id = ? and session_token = ? and session_id = ?",
        ):
            found.update(row[0] for row in workspace.database.execute(sql, (agent_id, token, ref.session_id)))
    for name in files.listing(workspace.root, MEMORY, ""):
        if carried_token(name) == token and (len(refs) and artifact_name(name) is None):
            found.add(f"{MEMORY}/{name}")
    return sorted(found)


def remove(workspace: Workspace, removal: Removal, reason: str, now_us: int) -> Removed:
    """Removes for good. A crash after the tombstone file is durable is finished by the next pass, whoever makes it."""
    words = _needles(workspace, removal)
    with state.workspace_lock(workspace.state):
        stone = _tombstone(workspace, removal, reason, now_us)
        path = tombstone_files.put(workspace.root, stone)
        with workspace.database.transaction(durable=True):
            tombstones.mirror(workspace.database, [stone])
        for artifact in removal.paths:
            if artifact_name(artifact.rpartition("/")[2]) is not None:
                files.unlink(workspace.root, artifact)
    before: int = workspace.database.value(
        "select count(*) from memory_artifacts where agent_id = ? and session_token = ?",
        (removal.agent_id, removal.session_token),
    )
    reconcile.run_pass(workspace, reconcile.Request(now_us=now_us))
    after: int = workspace.database.value(
        "select count(*) from memory_artifacts where agent_id = ? and session_token = ?",
        (removal.agent_id, removal.session_token),
    )
    return Removed(
        removal.agent_id,
        removal.session_token,
        path,
        removal.paths,
        before - after,
        history.holds(workspace.root, list(removal.paths)),
        tuple(foreign(workspace, removal, words)),
    )


def _tombstone(workspace: Workspace, removal: Removal, reason: str, now_us: int) -> Tombstone:
    existing = {(s.agent_id, s.session_token): s for s in tombstones.mirrored(workspace.database)}.get(
        (removal.agent_id, removal.session_token)
    )
    ids: list[str] | None = None
    if not removal.all_sessions:
        ids = sorted({ref.session_id for ref in removal.sessions} | set(existing.session_ids if existing else ()))
    if existing is not None and not existing.session_ids:
        ids = None
    paths = sorted({*removal.paths, *(existing.removed_paths if existing is not None else ())})
    return validate_tombstone(
        {
            "kind": "tombstone",
            "agent_id": removal.agent_id,
            "session_token": removal.session_token,
            "removed_at": iso(now_us),
            "reason": sanitize_line(reason),
            "removed_paths": [p for p in paths if artifact_name(p.rpartition("/")[2]) is not None],
            "tombstone_version": str(TOMBSTONE_VERSION),
            "session_ids": ids,
        }
    )


def _needles(workspace: Workspace, removal: Removal) -> set[bytes]:
    """Words by which text of the sessions is known in files that are not ours."""
    found = {removal.session_token}
    for ref in removal.sessions:
        found.update(word for word in (ref.session_id, ref.session_key) if word and len(word) >= 8)
        for (sentence,) in workspace.database.execute(
            "select memory_sentence from memory_artifacts where agent_id = ? and session_token = ? and session_id = ?",
            ref[:3],
        ):
            if sentence and len(sentence) >= 40:
                found.add(sentence)
    return {word.encode("utf-8", "replace") for word in found}


def foreign(workspace: Workspace, removal: Removal, words: Iterable[bytes]) -> list[str]:
    """Files of the workspace that are not ours and still hold text of a removed session; they are named, not touched."""
    needles = [word for word in words if word]
    found = []
    root = workspace.root
    for where, folders, names in os.walk(root, followlinks=False):
        relative = os.path.relpath(where, root)
        relative = "" if relative == "." else relative.replace(os.sep, "/")
        folders[:] = sorted(f for f in folders if not (relative == "" and f in (OWN, ".git")))
        for name in sorted(names):
            path = f"{relative}/{name}" if relative else name
            if relative == TOMBSTONES or not path.isprintable():
                continue
            status = os.lstat(os.path.join(where, name))
            if not stat.S_ISREG(status.st_mode):
                continue
            if _holds(root, path, needles) and not _only_ours(path):
                found.append(path)
    del removal
    return found


def _only_ours(path: str) -> bool:
    """Generated pages and kept copies are cleaned by us; what is left in them is a person's."""
    return KEPT_COPY.fullmatch(path) is not None and page_agent(path) is not None


def _holds(root: str, path: str, needles: Sequence[bytes]) -> bool:
    found = files.read(root, path, FOREIGN_LIMIT)
    return isinstance(found, Found) and any(needle in found.raw for needle in needles)


def lift(workspace: Workspace, agent_id: str, name: str) -> str:
    """Lifts a tombstone: mirror first, then the file, so that neither brings the other back. Gives the token.

    Raises `UsageError` where there is none. What was deleted stays deleted; copies that come back are indexed again.
    """
    for stone in tombstones.mirrored(workspace.database):
        if stone.agent_id == agent_id and (name == stone.session_token or name in stone.session_ids):
            with state.workspace_lock(workspace.state):
                files.unlink(workspace.root, tombstone_files.path_of(agent_id, stone.session_token))
                with workspace.database.transaction(durable=True):
                    tombstones.lift(workspace.database, agent_id, stone.session_token)
            return stone.session_token
    raise UsageError(
        f"no tombstone of agent {agent_id} is called {name!r}",
        hint="give the token or a session id that stands in memory/tombstones/",
        code="unknown-tombstone",
    )
