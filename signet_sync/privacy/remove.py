"""Removes sessions: tombstone file, mirror, artifact files, rows, scrub, pages, in that order; every step resumes.

Forgets memories: rows, and the pages and copies that show them.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from signet_sync.capture import spool
from signet_sync.capture import store as capture_store
from signet_sync.entities import erase
from signet_sync.entities import stage as entities_stage
from signet_sync.entities.erase import TakenLine
from signet_sync.errors import Halted, UsageError, WorkspaceError
from signet_sync.formats.artifact import TOMBSTONE_VERSION, Tombstone
from signet_sync.formats.entity_paths import KINDS
from signet_sync.formats.filename import artifact_name, find_carried_token, is_artifact_path
from signet_sync.formats.frontmatter import FrontmatterProblem, parse
from signet_sync.formats.handle import HANDLE, LETTERS, name_kind
from signet_sync.formats.ids import require_agent, token_of
from signet_sync.formats.paths import MEMORY, display, dream_page, head_page
from signet_sync.formats.snapshot import Found
from signet_sync.formats.timestamps import iso, local_day
from signet_sync.history import repository as history_repository
from signet_sync.memories import operations
from signet_sync.memories.store import memories, session_texts
from signet_sync.memories.store.memories import Memory
from signet_sync.privacy import scrub
from signet_sync.recall.store import references
from signet_sync.sessions.live import operations as sessions_live
from signet_sync.sessions.live import store as live
from signet_sync.storage import files, state_dir, writing
from signet_sync.storage.database.batches import Scope
from signet_sync.storage.database.connection import Database
from signet_sync.sync import engine
from signet_sync.sync import tombstones as tombstones_files
from signet_sync.sync.store import artifacts, sessions
from signet_sync.sync.store import tombstones as tombstones_store
from signet_sync.sync.store.sessions import SessionRef
from signet_sync.sync.tombstones import all_tombstones
from signet_sync.sync.workspace import Request, Workspace
from signet_sync.text.sanitizer import sanitize_line
from signet_sync.text.sentences import basename, flatten


@dataclass(frozen=True, slots=True)
class SessionRemoval:
    """What a removal covers: all or some sessions of one agent's token, and their files."""

    agent_id: str
    session_token: str
    sessions: tuple[SessionRef, ...]
    all_sessions: bool
    paths: tuple[str, ...]

    @property
    def session_ids(self) -> tuple[str, ...]:
        """Returns the ids of the sessions, sorted."""
        return tuple(sorted({ref.session_id for ref in self.sessions}))

    @property
    def scope(self) -> Scope:
        """Returns agent, token and session ids."""
        return self.agent_id, self.session_token, self.session_ids


class RemoveResult(NamedTuple):
    """The result of a removal; `pending` are files that could not be deleted yet.

    `foreign` are files that we do not write and that still contain text of the sessions: files of the workspace by
    relative path, and, by absolute path, the harness transcripts from which the sessions were captured.

    `git_history` states whether the workspace's repository may still contain them, `entity_lines` what entity files
    lost.
    """

    agent_id: str
    session_token: str
    tombstone: str
    removed_paths: tuple[str, ...]
    pending: tuple[str, ...]
    git_history: str
    foreign: tuple[str, ...]
    entity_lines: tuple[TakenLine, ...]


@dataclass(frozen=True, slots=True)
class Undo:
    """The undo of a removal: its tombstone and the sessions (none: all of them); `earlier`: it was lifted before."""

    tombstone: Tombstone
    session_ids: tuple[str, ...]
    path: str
    earlier: bool


def refresh(workspace: Workspace, instant: int, what: str = "removed") -> None:
    """Updates the index, so that no outdated list is agreed to. Raises `Halted` if the files are missing."""
    outcome = engine.run_pass(workspace, Request(now_us=instant, project=False))
    if outcome.cliff is not None:
        raise Halted(
            f"nothing can be {what} while files are missing: {outcome.cliff.message}",
            path="memory",
            hint="bring memory/ back and try again, or first run: signet-sync reindex --accept-removals",
        )


def plan(workspace: Workspace, agent_id: str, name: str) -> list[SessionRemoval]:
    """Returns what `remove NAME` would cover: an id or path covers its session, a key or token all of the token's.

    Raises `UsageError` if the name matches nothing, or is a prefix of several sessions.
    """
    sessions_live.settle(workspace)  # after the loss of the database, their files may not have been read yet
    database = workspace.database
    derived = token_of(agent_id, name)
    found = sessions.find(database, agent_id, name, sealed=True)
    # The key of a session whose files have vanished is stored nowhere, but its token was derived from it.
    found = found or sessions.find(database, agent_id, derived, sealed=True)
    running = [] if found else _find_running(workspace, agent_id, name)
    if running:
        return running
    if not found:
        raise sessions.make_unknown_error(agent_id, name)
    by_id = [ref for ref in found if ref.session_id == name]
    keys = ((ref.session_token, ref.session_key, (ref.session_key or "").strip()) for ref in found)
    whole = not by_id and any(name in some or some[0] == derived for some in keys)
    if not by_id and not whole and len(found) > 1:
        raise sessions.ambiguous(
            name, found, "use a session id in full, or the key or the name in files of all of them"
        )
    removals = []
    for token in sorted({ref.session_token for ref in found}):
        if whole:
            known = tombstones_store.sessions_of(database, (agent_id, token, ()))
            wanted = tuple(SessionRef(agent_id, token, one, None) for one in sorted({one for one, _ in known}))
        else:
            wanted = tuple(ref for ref in by_id or found if ref.session_token == token)
        # A harness with a constant key adds more sessions under this token: they are not covered.
        everyone = whole or all(token == token_of(agent_id, ref.session_id) for ref in wanted)
        paths = _paths(workspace, agent_id, token, wanted)
        removals.append(SessionRemoval(agent_id, token, wanted, everyone, paths))
    return removals


def _find_running(workspace: Workspace, agent_id: str, name: str) -> list[SessionRemoval]:
    """Returns what a name covers of sessions that have live turns and no file yet."""
    found: dict[str, list[SessionRef]] = {}
    everyone = False
    for key, session_id, *_ in live.sessions(workspace.database, agent_id):
        token = token_of(agent_id, key)
        if name in (session_id, key, token):
            found.setdefault(token, []).append(SessionRef(agent_id, token, session_id or key, key))
            everyone |= name != session_id or key == session_id
    return [SessionRemoval(agent_id, token, tuple(refs), everyone, ()) for token, refs in found.items()]


def _paths(workspace: Workspace, agent_id: str, token: str, refs: Sequence[SessionRef]) -> tuple[str, ...]:
    """Returns the files of some sessions, conflict copies included."""
    ids = tuple(sorted({ref.session_id for ref in refs}))
    found = {*tombstones_store.paths_of(workspace.database, (agent_id, token, ids))}
    for name in files.list_names(workspace.root, MEMORY, ""):
        if find_carried_token(name) == token and artifact_name(name) is None:
            copy = files.read(workspace.root, f"{MEMORY}/{name}", workspace.settings.max_file_bytes)
            with suppress(FrontmatterProblem):
                if isinstance(copy, Found) and parse(copy.raw).fields.get("session_id") in ids:
                    found.add(f"{MEMORY}/{name}")
    return tuple(sorted(found))


def describe(workspace: Workspace, removal: SessionRemoval) -> dict[str, str]:
    """Returns by id what a person knows the sessions by: day, folder of the project, sentence."""
    return {
        session_id: " · ".join(filter(None, (local_day(iso(at_us)), basename(project or ""), flatten(sentence, 160))))
        for session_id, at_us, sentence, project in session_texts.outlines(workspace.database, removal.scope)
    }


def entity_lines(workspace: Workspace, removal: SessionRemoval) -> tuple[TakenLine, ...]:
    """Returns the lines of entity files that a removal takes, because they rest on the sessions or repeat their words.

    Known while the sessions have rows.
    """
    if not entities_stage.has_entities(workspace, removal.agent_id):
        return ()
    needles = scrub.needles(workspace.database, [removal.scope], removal.paths)
    return tuple(erase.preview(workspace, removal.agent_id, paths=removal.paths, needles=needles))


def remove(workspace: Workspace, removal: SessionRemoval, reason: str, now_us: int) -> RemoveResult:
    """Removes sessions for good. After a crash, the next pass finishes once the tombstone file is durable."""
    root, database = workspace.root, workspace.database
    # 1. What only the rows tell: the words of the sessions, where they were captured, what rests on them.
    needles, transcripts = scrub.needles(database, [removal.scope], removal.paths), list_transcripts(workspace, removal)
    taken = entity_lines(workspace, removal)
    with state_dir.workspace_lock(workspace.state):
        # 2. The tombstone: from here on every pass completes the removal.
        tombstone = tombstone_of(workspace, removal, reason, now_us)
        path = tombstones_files.put(root, tombstone)
        with database.transaction(durable=True):
            tombstones_store.mirror(database, [tombstone])
        # 3. Files and jobs. What cannot be deleted now every pass tries again; the content leaves the index anyway.
        for artifact in filter(is_artifact_path, removal.paths):
            with suppress(OSError, WorkspaceError):
                writing.unlink(root, artifact)
        with suppress(OSError):  # the ids are known only as long as rows exist; the scrub tries again and reports
            spool.drop(
                workspace.state.spool,
                lambda job: job.agent_id == removal.agent_id and job.session_id in removal.session_ids,
            )
        # 4. Rows, scrub and pages, by a pass; then the copies of pages that were kept just now.
        workspace.events += engine.run_locked(workspace, Request(now_us=now_us)).trouble
        try:
            scrub.clean_of_words(workspace, needles)
        except (OSError, WorkspaceError) as error:
            workspace.events.append(f"a kept copy of a page may still contain removed text: {error}")
    # 5. What stayed.
    pending = tuple(artifact for artifact in removal.paths if files.status_of(root, artifact) is not None)
    foreign = session_texts.foreign_files(workspace, needles, path)
    return RemoveResult(
        removal.agent_id,
        removal.session_token,
        path,
        tuple(artifact for artifact in removal.paths if artifact not in pending),
        pending,
        _git_history(workspace, removal),
        tuple(sorted({*foreign, *transcripts})),
        taken,
    )


def _git_history(workspace: Workspace, removal: SessionRemoval) -> str:
    """Returns whether the repository contains one of the files; if it ignores all, pages may contain their words."""
    root, paths = workspace.root, {*removal.paths}
    state = history_repository.holds(root, list(removal.paths))
    if state != "clean" or not paths or not history_repository.find_ignored(root, sorted(paths)) >= paths:
        return state
    page = history_repository.holds(root, [head_page(removal.agent_id)])
    return "unknown" if page == "contains" else page


def tombstone_of(workspace: Workspace, removal: SessionRemoval, reason: str, now_us: int) -> Tombstone:
    """Returns the tombstone that a removal writes: it covers what one that the index knows covers, too."""
    mirrored = {one.key: one for one in tombstones_store.list_mirrored(workspace.database)}
    existing = mirrored.get(removal.scope[:2])
    ids: list[str] | None = None
    if not removal.all_sessions:
        ids = sorted({*removal.session_ids, *(existing.session_ids if existing else ())})
    if existing is not None and not existing.session_ids:
        ids = None
    paths = sorted({*removal.paths, *(existing.removed_paths if existing is not None else ())})
    return Tombstone.read(
        {
            "kind": "tombstone",
            "agent_id": removal.agent_id,
            "session_token": removal.session_token,
            "removed_at": iso(now_us),
            "reason": sanitize_line(reason),
            "removed_paths": [path for path in paths if is_artifact_path(path)],
            "tombstone_version": str(TOMBSTONE_VERSION),
            "session_ids": ids,
        }
    )


def list_transcripts(workspace: Workspace, removal: SessionRemoval) -> list[str]:
    """Returns the harness transcripts from which the sessions were captured; relative paths inside the workspace."""
    root = os.path.realpath(workspace.root) + os.sep
    ids = removal.session_ids
    token = removal.session_token if removal.all_sessions else None
    places = sorted({path for _, path, _ in capture_store.sources(workspace.database, removal.agent_id, ids, token)})
    # A path with a redacted secret cannot be checked: it is listed anyway.
    return [display(place.removeprefix(root)) for place in places if "[REDACTED:" in place or os.path.lexists(place)]


_BEGINNING = 6  # characters of a name that may stand for it


def find_undo(workspace: Workspace, agent_id: str, name: str) -> Undo:
    """Returns what `remove NAME --undo` would lift: for a key or token the whole tombstone, for an id its session.

    The beginning of a token or id stands for the only one that begins so. One that was lifted already is returned as
    well: who asks may not have heard the answer. Raises `UsageError` if there is no such tombstone.
    """
    standing, lifted = all_tombstones(workspace), tombstones_files.read_lifted(workspace.root)
    every = [one for one in (*standing.values(), *lifted.values()) if one.agent_id == agent_id]
    known = {one for tombstone in every for one in (tombstone.session_token, *tombstone.session_ids)}
    derived = token_of(agent_id, name)
    if len(name) >= _BEGINNING and known.isdisjoint((name, derived)):
        begun = [one for one in known if one.startswith(name)]
        begun = begun or tombstones_store.find_remembered(workspace.database, agent_id, name)
        name = begun[0] if len(begun) == 1 else name
    for tombstone in every:
        whole = tombstone.session_token in (name, derived) or (
            name in tombstone.removed_paths and len(tombstone.session_ids) < 2
        )
        if whole or name in tombstone.session_ids:
            ids = tombstone.session_ids if whole else (name,)
            path = tombstones_files.path_of(agent_id, tombstone.session_token)
            return Undo(tombstone, ids, path, standing.get(tombstone.key) != tombstone)
    raise UsageError(
        f"no tombstone of agent {agent_id} is called {name!r}",
        hint="give the session's key or id, the 16 characters of the session in the tombstone's file name, or the "
        "beginning of one",
        code="unknown-tombstone",
    )


def lift(workspace: Workspace, agent_id: str, name: str) -> None:
    """Lifts a tombstone, or takes one session out of it: first the files, then the mirror.

    After a crash in between the next pass finishes; it also updates the mirror of every other machine that the files
    reach. What was deleted stays deleted; copies that come back are indexed again. Raises `UsageError` if there is no
    such tombstone.
    """
    with state_dir.workspace_lock(workspace.state):
        undo = find_undo(workspace, agent_id, name)
        tombstone = undo.tombstone
        if undo.earlier:  # its mirror may be out of date
            rest = all_tombstones(workspace).get(tombstone.key)
        else:
            left = [session_id for session_id in tombstone.session_ids if session_id not in undo.session_ids]
            rest = tombstone.replace(session_ids=tuple(left)) if left else None
            tombstones_files.lift(workspace.root, tombstone.replace(session_ids=undo.session_ids), rest)
        with workspace.database.transaction(durable=True):
            if rest is not None:
                tombstones_store.mirror(workspace.database, [rest])
            else:
                tombstones_store.lift(workspace.database, agent_id, tombstone.session_token)
                artifacts.forget_files(workspace.database, [undo.path])
            capture_store.forget_removed(workspace.database)


# ── memories ──


class ForgetResult(NamedTuple):
    """The result of forgetting; `pending`: the next pass has to delete remaining bytes.

    `git_history` states whether versions of the page in the workspace's repository may still show it.
    """

    memory: Memory
    pending: bool
    git_history: str
    waiting: str


def forget(workspace: Workspace, agent_id: str, name: str, now_us: int) -> ForgetResult:
    """Forgets a memory to the last byte. After a crash, the next pass deletes the rest.

    Raises `UsageError` if the name refers to no memory or to several; `WorkspaceError`, `DatabaseError`.
    """
    with state_dir.workspace_lock(workspace.state):
        memory = require_memory(workspace.database, agent_id, name)
        # This pass moves text that a person wrote into the managed block to a copy beside the page, where it can be
        # cleaned.
        operations.update_page(workspace, agent_id, now_us)
        needles = session_texts.identify_memory(workspace.database, memory)
        # 1. Copies, because after the row is gone it is unknown what a crash has left in these.
        try:
            scrub.clean_of_words(workspace, needles)
        except OSError as error:
            raise WorkspaceError(
                f"a kept copy of {head_page(agent_id)} cannot be cleaned, so nothing was forgotten: {error}",
                hint="delete the copy, or make it writable, and try again",
            ) from error
        # 2. The row. From here on every pass completes it.
        with workspace.database.transaction(durable=True):
            memories.forget(workspace.database, agent_id, [memory.id])
        # 3. Pages, by a pass with its scrub, which a halted one does not reach; then the copies made since.
        outcome = operations.update_page(workspace, agent_id, now_us)
        if outcome.cliff is not None:
            scrub.scrub(workspace, now_us)
        try:
            scrub.clean_of_words(workspace, needles)
        except (OSError, WorkspaceError) as error:
            workspace.events.append(f"a kept copy of the page may still contain it: {error}")
        waiting = operations.explain_delay(agent_id, outcome)
        # A page that could not be rewritten still shows it.
        pending = bool(memories.list_unscrubbed(workspace.database) or waiting)
    git_history = history_repository.holds(workspace.root, [head_page(agent_id), dream_page(agent_id)])
    return ForgetResult(memory, pending, git_history, waiting)


def require_memory(database: Database, agent_id: str, name: str) -> Memory:
    """Returns the memory that a handle refers to. Raises `UsageError` if there is none, several, or something else."""
    require_agent(agent_id)
    wanted = name.strip().removeprefix("^")
    if HANDLE.fullmatch(wanted) and LETTERS[wanted[0]] in KINDS:
        raise UsageError(
            f"{name} is an entity file, not a memory",
            hint=f'signet-sync entity status {wanted} deprecated --reason "…"',
            code="not-a-memory",
        )
    if HANDLE.fullmatch(wanted) and wanted[0] != "m":
        raise UsageError(
            f"{name} is a {name_kind(LETTERS[wanted[0]])} and not a memory: it comes from a session's files",
            hint="signet-sync statements withdraw takes back what it states, signet-sync remove removes the session",
            code="not-a-memory",
        )
    memory = memories.get(database, agent_id, references.resolve(database, agent_id, name))
    if memory is None:
        raise references.refuse_unknown(agent_id, name)
    return memory


def forget_document(done: ForgetResult) -> dict[str, Any]:
    """Returns the JSON document of `forget --json`."""
    return {"id": done.memory.id, "forgotten": True, "pending": done.pending, "git_history": done.git_history}
