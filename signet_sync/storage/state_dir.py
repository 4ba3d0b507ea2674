"""Keeps the state folder of a workspace, outside the vault and found by an id: locks, heartbeat, backups, logs."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import ContextVar

from signet_sync.errors import AnotherAgent, WorkspaceError
from signet_sync.formats.paths import MEMORY
from signet_sync.storage import durable, locations
from signet_sync.storage.durable import private_folder, publish, sync_folder
from signet_sync.storage.locations import SILENCE as SILENCE
from signet_sync.storage.locations import StateFolder as StateFolder
from signet_sync.storage.locations import base as base
from signet_sync.storage.locations import boot_id as boot_id
from signet_sync.storage.locations import locate as locate
from signet_sync.storage.locations import process_alive as process_alive
from signet_sync.storage.locations import read_heartbeat as read_heartbeat
from signet_sync.storage.locations import read_json as read_json
from signet_sync.storage.locations import silence as silence

_RUN, _INTAKE = "run.lock", "intake.lock"
_ESTABLISH, _TOKENS = "establish.lock", "llm-tokens.lock"  # of all workspaces
_MOMENT = 0.25  # seconds: a process that only looks holds the lock of a run for much less
# The folder of locks of the workspace that this thread holds for several operations.
_HELD_HERE: ContextVar[str | None] = ContextVar("held_here", default=None)


def establish(root: str, write_id: Callable[[str], None], environ: Mapping[str, str] = os.environ) -> StateFolder:
    """Returns the state folder for a command that may write; gives the workspace an id if it has none.

    `write_id` gets the new id; it may raise `OSError` or `WorkspaceError`.

    A workspace whose id is still held by the path recorded for it is a copy: it gets an id of its own. A root that
    cannot be written keeps its real path as key.
    """
    real = os.path.realpath(root)
    where = base(environ)
    folder = locations.locate_by_id(where, real)
    if folder is None:
        remembered = locations.locate_by_record(where, real) if locations.read_id(real) is None else None
        if remembered is not None and not os.path.isdir(os.path.join(real, MEMORY)):
            # The id went together with memory/: a root that is not mounted, not a new workspace. Nothing is written.
            return remembered
        # Two commands that meet a new workspace at the same time must not give it two ids.
        with _hold(where, _ESTABLISH, 10.0, "another signet-sync command is setting up this workspace"):
            folder = locations.locate_by_id(where, real) or _adopt(where, real, write_id)
    keyed = locations.locate_by_path(where, real)
    if keyed.path != folder.path and os.path.isdir(keyed.path):
        # State collected under the real path moves along; `find_under_path` finds it if there is state of the id, too.
        with suppress(OSError):
            os.rename(keyed.path, folder.path)
            sync_folder(where)
    _record(folder, real)
    return folder


def _adopt(where: str, real: str, write_id: Callable[[str], None]) -> StateFolder:
    found = locations.read_id(real)
    remembered = locations.locate_by_record(where, real) if found is None else None
    import uuid

    fresh = remembered.key if remembered is not None else str(uuid.uuid4())
    try:
        write_id(fresh)
    except (OSError, WorkspaceError):
        return remembered or locations.locate_by_path(where, real)
    return StateFolder(os.path.join(where, fresh), fresh)


def find_under_path(folder: StateFolder, root: str) -> StateFolder | None:
    """Returns the state that was kept under a workspace's real path, if there is some beside that of its id."""
    keyed = locations.locate_by_path(os.path.dirname(folder.path), os.path.realpath(root))
    there = keyed.path != folder.path and any(os.path.lexists(place) for place in remains(keyed))
    return keyed if there else None


def _record(folder: StateFolder, real: str) -> None:
    private_folder(folder.path)
    write_json(os.path.join(folder.path, "workspace.json"), {"path": real})


def remains(folder: StateFolder) -> tuple[str, str]:
    """Returns the path of a workspace's state folder, and the path to which `discard` renames it before deleting."""
    return folder.path, f"{folder.path}.ejected"


def discard(folder: StateFolder, real: str) -> bool:
    """Deletes a workspace's state folder with all that it holds; False if there was none.

    It is renamed first: what a crash leaves of it is no workspace's state, and is deleted by the next call. Links are
    not followed. Raises `WorkspaceError` if it is not known to belong to this workspace, `OSError`.
    """
    place, begun = remains(folder)
    known = (locations.read_id(real), os.path.basename(locations.locate_by_path(base(), real).path))
    if os.path.dirname(place) != base() or os.path.basename(place) not in known:
        raise WorkspaceError("the state folder is not this workspace's", path=place, hint="nothing of it was deleted")
    require_own(folder, real)
    found = False
    for each in (begun, place):
        if os.path.islink(each) or not os.path.isdir(each):
            continue
        if each == place:
            os.rename(place, begun)
            sync_folder(os.path.dirname(place))
        import shutil

        shutil.rmtree(begun)
        found = True
    if found:
        sync_folder(os.path.dirname(place))
    _leave(os.path.dirname(place))
    return found


def _leave(where: str) -> None:
    """Deletes what the last workspace leaves: our locks, and their folder unless a variable names it."""
    with suppress(OSError, WorkspaceError):
        if {_ESTABLISH, _TOKENS}.issuperset(os.listdir(where)):
            with _hold(where, _ESTABLISH, 0.0, "held"):
                for name in os.listdir(where):
                    os.unlink(os.path.join(where, name))
                if os.path.basename(where) == locations.NAME:
                    os.rmdir(where)


def require_own(folder: StateFolder, real: str) -> None:
    """Raises `WorkspaceError` for a state folder of another workspace."""
    recorded = (read_json(os.path.join(folder.path, "workspace.json")) or {}).get("path")
    if isinstance(recorded, str) and recorded != real and locations.read_id(recorded) == os.path.basename(folder.path):
        raise WorkspaceError(
            f"the state folder belongs to {recorded}",
            path=folder.path,
            hint="nothing was deleted; eject that workspace",
        )


def write_json(path: str, value: object, *, durable: bool = False) -> None:
    """Writes a small JSON file atomically, only if it differs; with `durable` a power loss leaves one of the two."""
    data = (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
    with suppress(OSError), open(path, "rb") as handle:
        if handle.read() == data:
            return
    os.close(publish(path, data, durable=durable))


def sweep(folder: StateFolder) -> None:
    """Removes the temporary files that a crash left in the state folder: those whose owner is dead, or a day old."""
    for place in (folder.path, folder.backups, folder.injected, folder.journal, folder.live):
        with suppress(OSError):
            durable.sweep(place)


def sync_folders(folder: StateFolder) -> None:
    """Makes deletions in the state folder durable: no power loss undoes them. Raises `OSError`."""
    for place in (folder.path, folder.backups, folder.injected, folder.journal, folder.live, folder.spool):
        with suppress(FileNotFoundError):
            sync_folder(place)


def write_heartbeat(folder: StateFolder, value: Mapping[str, object]) -> None:
    """Writes the heartbeat: pid, host, boot, time, and the agent's status."""
    import socket

    status = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "boot": boot_id(),
        "beat_at": time.time(),
        **value,
    }
    private_folder(folder.path)
    write_json(folder.heartbeat, status)


def is_inaccessible(folder: StateFolder) -> bool:
    """Returns whether the state folder exists but its mode or owner denies access, so that its content is unknown."""
    return os.path.isdir(folder.path) and not os.access(folder.path, os.R_OK | os.W_OK | os.X_OK)


def run_lock_holder(folder: StateFolder) -> bool:
    """Returns whether a `run` holds the workspace: the kernel knows, whatever any file says."""
    try:
        if os.path.exists(os.path.join(folder.locks, _RUN)):
            with _hold(folder.locks, _RUN, 0.0, "held"):
                pass
    except (WorkspaceError, OSError):
        return True
    return False


@contextmanager
def run_lock(folder: StateFolder) -> Iterator[None]:
    """Locks a workspace for its only `run`. Raises `AnotherAgent` at once if another process holds the lock."""
    with ExitStack() as stack:
        try:
            stack.enter_context(_hold(folder.locks, _RUN, _MOMENT, "held"))
        except WorkspaceError:
            pid = (read_heartbeat(folder) or {}).get("pid")
            raise AnotherAgent(
                "another signet-sync agent runs on this workspace" + (f" (pid {pid})" if pid else ""),
                hint="signet-sync status shows it; stop it first, or let it run",
            ) from None
        yield


@contextmanager
def hold_workspace(folder: StateFolder, timeout: float) -> Iterator[None]:
    """Locks a workspace for several operations of this thread, each of which locks it, too: nothing comes between them.

    Raises as `workspace_lock`.
    """
    with workspace_lock(folder, timeout):
        token = _HELD_HERE.set(folder.locks)
        try:
            yield
        finally:
            _HELD_HERE.reset(token)


@contextmanager
def workspace_lock(folder: StateFolder, timeout: float = 60.0) -> Iterator[None]:
    """Locks a workspace for one pass or flow at a time. Raises `WorkspaceError` after `timeout` seconds."""
    if _HELD_HERE.get() == folder.locks:
        yield
        return
    with _hold(folder.locks, "workspace.lock", timeout, "another signet-sync command is working on this workspace"):
        # Whatever is journalled meanwhile has a place.
        private_folder(folder.journal)
        yield


# What one process at a time does: for how many seconds another one waits, and what it is told then.
_LOCKS = {
    "exchange": (60.0, "another signet-sync command is exchanging the database"),  # it is moved aside
    "history": (60.0, "another signet-sync command is writing the history"),
    "fleet": (0.0, "another process is sharing this workspace's rows"),
    "injected": (1.0, "another hook records what its session got"),  # each holds it for milliseconds
}


def lock(folder: StateFolder, name: str, timeout: float | None = None) -> AbstractContextManager[None]:
    """Locks one of `_LOCKS`. Raises `WorkspaceError` (`busy`) after its seconds, or after `timeout`."""
    longest, message = _LOCKS[name]
    return _hold(folder.locks, f"{name}.lock", longest if timeout is None else timeout, message)


@contextmanager
def intake_lock(folder: StateFolder, timeout: float = 0.0) -> Iterator[None]:
    """Locks the spool of a workspace for one worker. Raises `WorkspaceError` (`busy`) after `timeout` seconds.

    Who started this process may hold it already, and give it as stdin: it is released as if it were taken here.
    """
    if _is_still(0, os.path.join(folder.locks, _INTAKE)):
        handle, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        try:
            yield
        finally:
            os.close(handle)
        return
    with _hold(folder.locks, _INTAKE, timeout, "another process is importing this workspace's transcripts"):
        yield


def intake_lock_to_give(folder: StateFolder) -> int | None:
    """Returns a descriptor that holds the lock of the spool, for a worker's stdin; None if there is a worker.

    That one looks for jobs once more after it has released the lock, so none that is there by now is left.
    """
    return _take_lock(folder.locks, _INTAKE)


def token_lock(where: str) -> AbstractContextManager[None]:
    """Locks the record of spent tokens, which all workspaces share. Raises `WorkspaceError` (`busy`) after 5 s."""
    return _hold(where, _TOKENS, 5.0, "another process holds the record of tokens")


def session_lock(folder: StateFolder, token: str, timeout: float = 10.0) -> AbstractContextManager[None]:
    """Locks the manifests of a session for one writer (sessions share 1,024 locks by their tokens)."""
    message = "another program is writing this session's manifest"
    return _hold(folder.locks, f"session-{token[:2]}.lock", timeout, message)


@contextmanager
def _hold(locks: str, name: str, timeout: float, message: str) -> Iterator[None]:
    """Locks a file; the kernel unlocks it when the process ends. Raises `WorkspaceError` (`busy`) after the timeout."""
    deadline = time.monotonic() + timeout
    while (handle := _take_lock(locks, name)) is None:
        if time.monotonic() >= deadline:
            raise WorkspaceError(message, hint="wait for it to end and try again", code="busy")
        time.sleep(0.02)
    try:
        yield
    finally:
        os.close(handle)


def _take_lock(locks: str, name: str) -> int | None:
    """Returns a descriptor that holds the lock; None if another process holds it."""
    place = os.path.dirname(locks)
    if locations.is_id(os.path.basename(place)) and not os.path.isdir(place):
        # `establish` has made it: whoever still works on an ejected workspace must not begin its state anew.
        raise WorkspaceError(
            "the state folder is gone", path=place, hint="to use the workspace again: signet-sync reindex"
        )
    private_folder(locks)
    path = os.path.join(locks, name)
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None  # the folder of the locks was deleted just now
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_still(handle, path):
            return handle
    except BlockingIOError:
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _is_still(handle: int, path: str) -> bool:
    """Returns whether the file still has this name: locking a deleted or moved file excludes no other process."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except OSError:
        return False
