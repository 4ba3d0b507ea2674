"""Carries out a plan in one workspace. It may be called again at any time, and then does what is left to do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple

from signet_sync.app.workspace import opened
from signet_sync.errors import SignetSyncError, Unreachable, UsageError, WorkspaceError
from signet_sync.fleet import workspaces
from signet_sync.fleet.removal import object_store, selection
from signet_sync.fleet.removal.finding import PlannedSession, read_only, state_of, words_elsewhere
from signet_sync.fleet.removal.object_store import ObjectStore, Stored
from signet_sync.formats.artifact import Tombstone
from signet_sync.formats.filename import carried_token
from signet_sync.formats.paths import kept_page_agent, page_agent
from signet_sync.formats.snapshot import TOMBSTONE_LIMIT, Found, Signature, Trouble
from signet_sync.formats.timestamps import iso
from signet_sync.history.git import versions
from signet_sync.privacy import quotes
from signet_sync.privacy import remove as privacy_remove
from signet_sync.privacy.remove import SessionRemoval
from signet_sync.settings import model
from signet_sync.storage import files, state_dir
from signet_sync.storage.database.removal import Scope
from signet_sync.storage.remote import RemoteRoot
from signet_sync.sync import planner
from signet_sync.sync.planner import JudgeContext, Tombstones
from signet_sync.sync.removals import all_tombstones
from signet_sync.sync.store import counts
from signet_sync.sync.tombstones import files as tombstones_files
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrases import counted

State = Literal["removed", "nothing-left", "pending", "unreachable", "not-writable"]
DONE = frozenset({"removed", "nothing-left"})
_PATIENCE = 10.0  # seconds to wait for another command's work on a workspace
_ATTEMPTS = 5
_NOWHEN = Signature(0, 0, 0, 0)


class RemoveRequest(NamedTuple):
    """A workspace of an approved plan; `quoting` is what becomes of quotes in other sessions, None if there were none.

    `elsewhere` and `quoted_in` are those of the plan. `now_us`: microseconds since 1970 UTC.
    """

    workspace: str
    sessions: tuple[PlannedSession, ...]
    reason: str
    quoting: str | None
    quoted_in: tuple[str, ...]
    elsewhere: tuple[str, ...]
    obstacle: str
    now_us: int

    @property
    def scopes(self) -> list[Scope]:
        """Returns agent, token and session ids of what is removed; no ids: all sessions of the token."""
        return [(one.agent_id, one.session_token, () if one.all_sessions else one.session_ids) for one in self.sessions]

    @property
    def paths(self) -> set[str]:
        """Returns the files of the plan."""
        return {file.path for one in self.sessions for file in one.files}


class Removal(NamedTuple):
    """What became of one workspace.

    `files` are files of the sessions that are gone, `left` those that are not, `tombstones` what keeps them from
    coming back. `remains` say where words of the sessions are that were not removed, each with what to do; `kept` are
    quotes that the plan leaves. `message` says why it is pending, unreachable or not writable.
    """

    workspace: str
    state: State
    message: str = ""
    session_ids: tuple[str, ...] = ()
    tombstones: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    remains: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


def remove_one(asked: RemoveRequest) -> Removal:
    """Removes the planned sessions from one workspace. What prevents it is a result, not an error."""
    if asked.obstacle and "://" in asked.workspace:  # of a folder, it may have been put right
        return undone(asked, "not-writable", asked.obstacle)
    if "://" not in asked.workspace and not os.path.isdir(asked.workspace):
        return undone(asked, "unreachable", "there is no such folder")
    try:
        with workspaces.opened(asked.workspace) as root:
            obstacle = object_store.obstacle(root, asked.workspace)
            if obstacle:
                return undone(asked, "not-writable", obstacle)
            if isinstance(root, RemoteRoot):
                return _in_store(root, object_store.opened(asked.workspace), asked)
            return _in_folder(root, asked)
    except PermissionError as error:
        return undone(asked, "not-writable", error.strerror or str(error))
    except (SignetSyncError, OSError) as error:
        return undone(asked, "unreachable" if isinstance(error, Unreachable) else "pending", workspaces.why_not(error))


def undone(asked: RemoveRequest, state: State, message: str) -> Removal:
    """Returns that nothing was removed, and why."""
    ids = tuple(sorted({session_id for one in asked.sessions for session_id in one.session_ids}))
    return Removal(asked.workspace, state, message, ids, left=tuple(sorted(asked.paths)))


# ── a folder of this machine ──


def _in_folder(root: str, asked: RemoveRequest) -> Removal:
    """Removes with the operation of `remove`, in the workspace's own index; one without it gets an index in memory."""
    before = files.signatures(root, sorted(asked.paths))
    settings, _ = model.load(root)
    own = os.path.exists(state_dir.locate(root).database)
    with opened(root, settings, database=None if own else ":memory:") as workspace, _alone(workspace):
        privacy_remove.refresh(workspace, asked.now_us)
        found = selection.removals(workspace, asked.scopes)
        quoted = quotes.quoted(workspace, found)
        if quoted.places and asked.quoting is None:
            raise UsageError(
                "other sessions have come to quote it since the plan: " + ", ".join(quoted.places[:4]),
                hint="plan again with --quoting",
            )
        if asked.quoting == "redact":
            quotes.redact(workspace, quoted, asked.reason, asked.now_us)
        by_others = quotes.quoted(workspace, found, by_others=True).paths
        done = [
            privacy_remove.remove(workspace, one, asked.reason, asked.now_us, quoted_in=quoted.places) for one in found
        ]
        remains = [f"{path}: of another agent, quotes it" for path in by_others]
        histories = [(one.session_token, one.git_history) for one in done]
        if not found:  # it was killed after the removal: what a pass has not cleaned is known from the plan
            histories = [(asked.sessions[0].session_token, versions.holds(root, sorted(asked.paths)))]
            others = (path for path in asked.elsewhere if page_agent(path) is None and kept_page_agent(path) is None)
            remains += [f"{path}: contained text of it when the plan was made" for path in others]
        for one in done:
            remains += [f"{path}: not written by signet-sync, contains text of it" for path in one.foreign]
        remains += [
            "the history of its repository: signet-sync history forget"
            for _, state in histories
            if state in ("contains", "unknown")
        ]
        outcome = _outcome(workspace, asked, found, remains, () if asked.quoting == "redact" else quoted.places)
        return outcome._replace(message=outcome.message or _since_the_plan(asked, before, found))


def _alone(workspace: Workspace) -> AbstractContextManager[None]:
    return state_dir.workspace_held(workspace.state, _PATIENCE)


def _outcome(
    workspace: Workspace,
    asked: RemoveRequest,
    found: Sequence[SessionRemoval],
    remains: Iterable[str],
    kept: Iterable[str],
) -> Removal:
    """Returns what is gone and what is not, as a pass has just seen it."""
    stones = _in_force(workspace, asked)
    wanted = asked.paths.union(*(one.paths for one in found))
    tokens = {scope[1] for scope in asked.scopes} | {one.session_token for one in found}
    left = sorted(path for path in _tombstoned(workspace) if path in wanted or carried_token(path) in tokens)
    states = files.signatures(workspace.root, sorted(wanted))
    ids = {session_id for one in asked.sessions for session_id in one.session_ids}
    ids |= {session_id for one in found for session_id in one.session_ids}
    state: State = "pending" if left else "removed" if stones else "nothing-left"
    return Removal(
        asked.workspace,
        state,
        "some files cannot be deleted now" if left else "",
        tuple(sorted(ids)),
        tuple(sorted(tombstones_files.path_of(*_key(one)) for one in stones)),
        tuple(sorted(wanted.difference(left, states))),
        tuple(left),
        tuple(dict.fromkeys(remains)),
        tuple(sorted(kept)),
    )


def _since_the_plan(asked: RemoveRequest, before: Mapping[str, Signature], found: Sequence[SessionRemoval]) -> str:
    """Returns how many files had come or changed since the plan; empty if none had."""
    planned = {file.path: file.state for one in asked.sessions for file in one.files}
    moved = sum(planned[path] != state_of(signature) for path, signature in before.items())
    moved += len({path for one in found for path in one.paths} - planned.keys())
    return f"{counted(moved, 'file')} came or changed since the plan" if moved else ""


def _in_force(workspace: Workspace, asked: RemoveRequest) -> list[Tombstone]:
    """Returns the tombstones that cover what was planned."""
    ids = {(agent_id, token): {*some} for agent_id, token, some in asked.scopes}
    stones = [one for one in all_tombstones(workspace) if _key(one) in ids]
    stones = [one for one in stones if one not in tombstones_files.lifted(workspace.root, [one])]
    return [one for one in stones if not one.session_ids or (ids[_key(one)] and ids[_key(one)] <= {*one.session_ids})]


def _key(tombstone: Tombstone) -> tuple[str, str]:
    return tombstone.agent_id, tombstone.session_token


def _tombstoned(workspace: Workspace) -> set[str]:
    """Returns the files that a pass would delete: their sessions were removed."""
    return {one.path for one in counts.problems(workspace.database) if one.verdict == "tombstoned"}


# ── an object store ──


def _in_store(root: RemoteRoot, store: ObjectStore, asked: RemoveRequest) -> Removal:
    """Writes the tombstones, then deletes what a pass of the workspace's own agent would delete, until nothing is left.

    Whether something is left is looked up in a new listing of the store.
    """
    with read_only(root, asked.now_us) as workspace:
        before = files.signatures(root, sorted(asked.paths))
        found = selection.removals(workspace, asked.scopes)
        quoted = quotes.quoted(workspace, found).paths if found else asked.quoted_in
        others = words_elsewhere(workspace, found) if found else asked.elsewhere
        known = {_key(one): one for one in _in_force(workspace, asked)}
        known |= {_key(one): one for one in (_put(store, workspace, removal, asked) for removal in found)}
        judging = JudgeContext(
            Tombstones(list(known.values())),
            workspace.noise,
            lambda _: None,
            iso(asked.now_us),
            workspace.settings.max_file_bytes,
        )
        candidates = asked.paths.union(_tombstoned(workspace), *(one.paths for one in found)) if known else set()
    remains = [f"{path}: quotes it; left to the workspace's own agent" for path in quoted]
    remains += [f"{path}: contains text of it; the next pass of its own agent cleans what it writes" for path in others]
    for _ in range(_ATTEMPTS):
        gone = {path for path in sorted(candidates) if _delete(store, path, judging)}
        with workspaces.opened(asked.workspace) as again, read_only(again, asked.now_us) as workspace:
            outcome = _outcome(workspace, asked, found, remains, ())
            more = bool(selection.removals(workspace, asked.scopes))
        candidates = {*outcome.left}
        if not candidates or not gone:
            break
    if more:
        return outcome._replace(state="pending", message="files of it came meanwhile; apply the plan again")
    kept = store.kept_versions(outcome.files)
    if kept != 0:
        what = "older versions" if kept is None else counted(kept, "older version")
        remains.append(f"the bucket may keep {what} of the files: delete them there, or by its lifecycle rules")
    message = outcome.message or _since_the_plan(asked, before, found)
    return outcome._replace(remains=tuple(dict.fromkeys(remains)), message=message)


def _put(store: ObjectStore, workspace: Workspace, removal: SessionRemoval, asked: RemoveRequest) -> Tombstone:
    """Writes a tombstone that covers a removal and what an earlier one covers; returns the one that is there then."""
    path = tombstones_files.path_of(removal.agent_id, removal.session_token)
    aside = tombstones_files.lifted_path(removal.agent_id, removal.session_token)
    fresh = privacy_remove.tombstone_of(workspace, removal, asked.reason, asked.now_us)
    for _ in range(_ATTEMPTS):
        lifted, stored = store.read(aside, TOMBSTONE_LIMIT), store.read(path, TOMBSTONE_LIMIT)
        before = _tombstone_in(path, stored)
        if lifted is not None:
            undone = _tombstone_in(path, lifted)
            if before is not None and (undone is None or undone.includes(before)):
                before = None
            if not store.delete(aside, lifted.version):
                continue
        whole = fresh if before is None else before.joined(fresh)
        if before is not None and before.includes(whole.model_copy(update={"removed_at": before.removed_at})):
            return before
        if store.put(path, tombstones_files.text_of(whole), stored.version if stored is not None else None):
            return whole
    raise WorkspaceError("the tombstone is changed again and again", path=path, hint="apply the plan again later")


def _tombstone_in(path: str, stored: Stored | None) -> Tombstone | None:
    if stored is None or stored.raw is None:
        return None
    return planner.judge_tombstone(path, Found(stored.raw, _NOWHEN))[1]


def _delete(store: ObjectStore, path: str, judging: JudgeContext) -> bool:
    """Deletes an object if the tombstones cover what it holds at that moment; returns whether it is gone."""
    for _ in range(_ATTEMPTS):
        stored = store.read(path, judging.max_file_bytes)
        if stored is None:
            return True
        found = Trouble("too-large", "") if stored.raw is None else Found(stored.raw, _NOWHEN)
        if not planner.judge(path, found, judging).unlink:
            return False
        if store.delete(path, stored.version):
            return True
    return False
