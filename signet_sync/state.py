"""The state folder of a workspace: outside the vault, found again by an id; locks, heartbeat, backups, logs."""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from signet_sync.contracts.places import MEMORY, WORKSPACE_ID
from signet_sync.errors import AnotherAgent, WorkspaceError

_ID = frozenset("0123456789abcdef-")
_RUN = "run.lock"
_TEMPORARY = re.compile(r".+\.(\d{1,10})\.tmp(?:-journal|-wal|-shm)?", re.ASCII)
_MOMENT = 0.25  # seconds: somebody who only looks holds the lock of a run for much less


@dataclass(frozen=True, slots=True)
class StateFolder:
    """Paths of one workspace's state; nothing is made before it is needed."""

    path: str
    key: str

    @property
    def database(self) -> str:
        return os.path.join(self.path, "signet-sync.db")

    @property
    def heartbeat(self) -> str:
        return os.path.join(self.path, "heartbeat.json")

    @property
    def logs(self) -> str:
        return os.path.join(self.path, "logs")

    @property
    def backups(self) -> str:
        return os.path.join(self.path, "backups")

    @property
    def locks(self) -> str:
        return os.path.join(self.path, "locks")


def base(environ: Mapping[str, str] = os.environ) -> str:
    """The folder that holds every workspace's state folder; `SIGNET_STATE` moves it."""
    moved = environ.get("SIGNET_STATE")
    if moved:
        return os.path.abspath(os.path.expanduser(moved))
    chosen = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(chosen):
        return os.path.join(chosen, "signet-sync")
    import platformdirs

    return platformdirs.user_state_dir("signet-sync", appauthor=False)


def locate(root: str, environ: Mapping[str, str] = os.environ) -> StateFolder:
    """The state folder of a workspace, reading only: by its id, else by its real path. Nothing is written."""
    real = os.path.realpath(root)
    where = base(environ)
    folder = _identified(where, real)
    if folder is None and _read_id(real) is None:
        folder = _remembered(where, real)
    return folder or _by_path(where, real)


def establish(
    root: str, write_id: Callable[[str, str | None], None], environ: Mapping[str, str] = os.environ
) -> StateFolder:
    """The state folder of a workspace for a command that may write both: gives the workspace an id where it has none.

    `write_id` gets the fresh id and the old one; it may raise `OSError` or `WorkspaceError`.

    An id whose recorded path still holds it marks this workspace as a copy: it gets an id of its own. A root that
    cannot be written keeps its real path as key.
    """
    real = os.path.realpath(root)
    where = base(environ)
    folder = _identified(where, real)
    if folder is None:
        remembered = _remembered(where, real) if _read_id(real) is None else None
        if remembered is not None and not os.path.isdir(os.path.join(real, MEMORY)):
            # The id went together with memory/: a root that is not mounted, not a new workspace. Nothing is written.
            return remembered
        # Two commands that meet a new workspace at the same time must not give it two ids.
        with _held(where, "establish.lock", 10.0, "another signet-sync command is setting up this workspace"):
            folder = _identified(where, real) or _adopt(where, real, write_id)
    _record(folder, real)
    return folder


def _identified(where: str, real: str) -> StateFolder | None:
    """The state folder of the workspace's id, unless there is none or it is the id of the workspace copied from."""
    found = _read_id(real)
    if found is None or _is_copy(os.path.join(where, found), real):
        return None
    return StateFolder(os.path.join(where, found), found)


def _adopt(where: str, real: str, write_id: Callable[[str, str | None], None]) -> StateFolder:
    found = _read_id(real)
    keyed = _by_path(where, real)
    remembered = _remembered(where, real) if found is None else None
    fresh = remembered.key if remembered is not None else str(uuid.uuid4())
    try:
        write_id(fresh, found)
    except (OSError, WorkspaceError):
        return remembered or keyed
    folder = StateFolder(os.path.join(where, fresh), fresh)
    if found is None and remembered is None and os.path.isdir(keyed.path):
        # What was gathered under the real path (an `--index-only` run) moves along.
        with suppress(OSError):
            os.rename(keyed.path, folder.path)
    return folder


def _remembered(where: str, real: str) -> StateFolder | None:
    """The state folder that recorded this real path, where the workspace itself has lost its id."""
    try:
        names = sorted(os.listdir(where))
    except OSError:
        return None
    for name in names:
        if len(name) == 36 and _recorded(os.path.join(where, name)) == real:
            return StateFolder(os.path.join(where, name), name)
    return None


def _recorded(folder: str) -> str | None:
    try:
        with open(os.path.join(folder, "workspace.json"), encoding="utf-8") as handle:
            path = json.load(handle).get("path")
    except (OSError, ValueError, AttributeError):
        return None
    return path if isinstance(path, str) else None


def _by_path(where: str, real: str) -> StateFolder:
    key = "path-" + sha256(os.fsencode(real)).hexdigest()[:32]
    return StateFolder(os.path.join(where, key), key)


def _read_id(real: str) -> str | None:
    try:
        handle = os.open(os.path.join(real, WORKSPACE_ID), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        text = os.read(handle, 200).decode("ascii", "replace").strip().lower()
    except OSError:
        return None
    finally:
        os.close(handle)
    return text if len(text) == 36 and _ID.issuperset(text) else None


def _is_copy(folder: str, real: str) -> bool:
    recorded = _recorded(folder)
    if recorded is None or recorded == real or _read_id(recorded) != os.path.basename(folder):
        return False
    try:
        return not os.path.samefile(recorded, real)  # one folder may be reached by several paths
    except OSError:
        return False


def _record(folder: StateFolder, real: str) -> None:
    private_folder(folder.path)
    write_json(os.path.join(folder.path, "workspace.json"), {"path": real})


def private_folder(path: str) -> None:
    """Makes a folder and its missing parents for the user alone; `os.makedirs` leaves the parents to the umask."""
    parent = os.path.dirname(path)
    if parent and not os.path.isdir(parent):
        private_folder(parent)
    os.makedirs(path, mode=0o700, exist_ok=True)


def write_json(path: str, value: object) -> None:
    """Writes a small JSON file atomically, only if it differs."""
    data = (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
    with suppress(OSError), open(path, "rb") as handle:
        if handle.read() == data:
            return
    temporary = f"{path}.{os.getpid()}.tmp"
    handle_fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with open(handle_fd, "wb") as handle:
            handle.write(data)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def sweep(folder: StateFolder) -> None:
    """Removes the temporary files that a crash left in the state folder: those whose owner is dead, or a day old."""
    for place in (folder.path, folder.backups):
        with suppress(OSError):
            for name in os.listdir(place):
                match = _TEMPORARY.fullmatch(name)
                path = os.path.join(place, name)
                with suppress(OSError):
                    old = time.time() - os.stat(path).st_mtime > 86_400
                    if match is not None and (old or not process_alive(int(match[1]))):
                        os.unlink(path)


def process_alive(pid: int) -> bool:
    """Whether some process of this machine has this id now; who asks must bear that ids are used again."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def beat(folder: StateFolder, value: Mapping[str, object]) -> None:
    """Writes the heartbeat: pid, host, boot, time, and what the agent says of itself."""
    status = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "boot": boot_id(),
        "beat_at": time.time(),
        **value,
    }
    private_folder(folder.path)
    write_json(folder.heartbeat, status)


def read_heartbeat(folder: StateFolder) -> dict[str, Any] | None:
    """The last heartbeat, or None."""
    try:
        with open(folder.heartbeat, encoding="utf-8") as handle:
            value = json.load(handle)
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def boot_id() -> str:
    """What tells one boot of this machine from another; empty where the system does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as handle:
            return handle.read().strip()
    except OSError:
        return ""


def run_lock_holder(folder: StateFolder) -> bool:
    """Whether some `run` holds the workspace: the kernel knows, whatever any file says."""
    with ExitStack() as stack:
        try:
            if os.path.exists(os.path.join(folder.locks, _RUN)):
                stack.enter_context(_held(folder.locks, _RUN, 0.0, "held"))
            stack.enter_context(_folder_held(folder.path, 0.0))
        except FileNotFoundError:
            return False
        except (WorkspaceError, OSError):
            return True
    return False


@contextmanager
def run_lock(folder: StateFolder) -> Iterator[None]:
    """The one `run` of a workspace. Raises `AnotherAgent` at once where another holds it."""
    with ExitStack() as stack:
        try:
            stack.enter_context(_held(folder.locks, _RUN, _MOMENT, "held"))
            # The lock file can be deleted while it is held; the folder of the database can't.
            stack.enter_context(_folder_held(folder.path, _MOMENT))
        except (WorkspaceError, BlockingIOError):
            pid = (read_heartbeat(folder) or {}).get("pid")
            raise AnotherAgent(
                "another signet-sync agent runs on this workspace" + (f" (pid {pid})" if pid else ""),
                hint="signet-sync status shows it; stop it first, or leave it to its work",
            ) from None
        yield


@contextmanager
def _folder_held(path: str, timeout: float) -> Iterator[None]:
    """A kernel lock on a folder. Raises `BlockingIOError`; file systems that cannot lock folders are let through."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + timeout
        while not _flocked(handle):
            if time.monotonic() >= deadline:
                raise BlockingIOError
            time.sleep(0.01)
        yield
    finally:
        os.close(handle)


def _flocked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


@contextmanager
def workspace_lock(folder: StateFolder, timeout: float = 60.0) -> Iterator[None]:
    """Passes and flows of one workspace, one after the other. Raises `WorkspaceError` after `timeout` seconds."""
    with _held(folder.locks, "workspace.lock", timeout, "another signet-sync command is working on this workspace"):
        yield


@contextmanager
def session_lock(folder: StateFolder, token: str, timeout: float = 10.0) -> Iterator[None]:
    """One writer at a time for the manifests of a session (sessions share 1,024 locks by their tokens)."""
    with _held(
        folder.locks, f"session-{token[:2]}.lock", timeout, "another program is writing this session's manifest"
    ):
        yield


@contextmanager
def _held(locks: str, name: str, timeout: float, message: str) -> Iterator[None]:
    from filelock import FileLock, Timeout

    private_folder(locks)
    lock = FileLock(os.path.join(locks, name), timeout=timeout, mode=0o600)
    try:
        lock.acquire(poll_interval=0.02)
    except Timeout:
        raise WorkspaceError(message, hint="wait for it to end and try again", code="busy") from None
    try:
        yield
    finally:
        lock.release()
