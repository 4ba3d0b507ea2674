"""Where a workspace, its state folder and the user's settings are: the standard library alone, cheap enough for a hook.

Every hook of a harness pays for what is imported here: no dataclasses, no sockets, nothing from outside. The folders
are those that `platformdirs` names (held by a test).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from hashlib import sha256

from signet_sync.formats.paths import SETTINGS, WORKSPACE_ID

TYPE_CHECKING = False  # what `typing` calls so, without the milliseconds of importing it
if TYPE_CHECKING:
    from typing import Any

DEFAULT_WORKSPACE = "~/.agents"
# An agent that gave no sign of life for so many seconds hangs; a healthy one gives one four times a minute.
SILENCE = 120.0
# Beside the database: what a full pass that found nothing to do has seen (`app.unchanged`).
SNAPSHOT = ".snapshot"
_ID = frozenset("0123456789abcdef-")
_NAME = "signet-sync"
_PLACES = frozenset({"SIGNET_WORKSPACE", "SIGNET_DB", "SIGNET_STATE", "SIGNET_CONFIG"})


class StateFolder:
    """Paths of one workspace's state; nothing is made before it is needed."""

    __slots__ = ("key", "path")

    def __init__(self, path: str, key: str) -> None:
        self.path = path
        self.key = key

    def __repr__(self) -> str:
        return f"StateFolder({self.path!r}, {self.key!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StateFolder) and (self.path, self.key) == (other.path, other.key)

    def __hash__(self) -> int:
        return hash((self.path, self.key))

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

    @property
    def journal(self) -> str:
        return os.path.join(self.path, "journal")

    @property
    def harnesses(self) -> str:
        return os.path.join(self.path, "harnesses.json")

    @property
    def live(self) -> str:
        return os.path.join(self.path, "live")

    @property
    def settings(self) -> str:
        return os.path.join(self.path, "settings.json")

    @property
    def spool(self) -> str:
        return os.path.join(self.path, "spool")


def locate_workspace(flag: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """The workspace root as an absolute path: `--workspace`, else `SIGNET_WORKSPACE`, else `~/.agents`."""
    chosen = flag or environ.get("SIGNET_WORKSPACE") or DEFAULT_WORKSPACE
    return os.path.abspath(os.path.expanduser(chosen))


def user_file(environ: Mapping[str, str] = os.environ) -> str:
    """Path of the user's own settings file; `SIGNET_CONFIG` moves it."""
    moved = environ.get("SIGNET_CONFIG")
    if moved:
        return os.path.abspath(os.path.expanduser(moved))
    return os.path.join(_platform_folder(environ, "XDG_CONFIG_HOME", "~/.config"), "config.toml")


def has_settings(root: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Says whether anything may be set, without reading it: there is a file, or a variable that names no place."""
    named = any(name.startswith("SIGNET_") and name not in _PLACES for name in environ)
    return named or os.path.lexists(os.path.join(root, SETTINGS)) or os.path.lexists(user_file(environ))


def base(environ: Mapping[str, str] = os.environ) -> str:
    """The folder that holds every workspace's state folder; `SIGNET_STATE` moves it."""
    moved = environ.get("SIGNET_STATE")
    if moved:
        return os.path.abspath(os.path.expanduser(moved))
    return _platform_folder(environ, "XDG_STATE_HOME", "~/.local/state")


def _platform_folder(environ: Mapping[str, str], variable: str, usual: str) -> str:
    """Our folder where this system keeps such things; a relative path in the variable counts for nothing (XDG)."""
    chosen = environ.get(variable, "")
    if not os.path.isabs(chosen):
        chosen = os.path.expanduser("~/Library/Application Support" if sys.platform == "darwin" else usual)
    return os.path.join(chosen, _NAME)


def locate(root: str, environ: Mapping[str, str] = os.environ) -> StateFolder:
    """The state folder of a workspace, reading only: by its id, else by its real path. Nothing is written."""
    real = os.path.realpath(root)
    where = base(environ)
    folder = identified(where, real)
    if folder is None and read_id(real) is None:
        folder = remembered(where, real)
    return folder or by_path(where, real)


def identified(where: str, real: str) -> StateFolder | None:
    """The state folder of the workspace's id, unless there is none or it is the id of the workspace copied from.

    A sync service may have put another machine's id in place of ours: one that is not known here does not make this
    workspace, whose path is known, another one.
    """
    found = read_id(real)
    if found is None:
        return None
    folder = os.path.join(where, found)
    if _recorded(folder) is None:
        return remembered(where, real) or StateFolder(folder, found)
    return None if _is_copy(folder, real) else StateFolder(folder, found)


def remembered(where: str, real: str) -> StateFolder | None:
    """The state folder that recorded this real path, where the workspace itself has lost its id."""
    try:
        names = sorted(os.listdir(where))
    except OSError:
        return None
    for name in names:
        if len(name) == 36 and _recorded(os.path.join(where, name)) == real:
            return StateFolder(os.path.join(where, name), name)
    return None


def by_path(where: str, real: str) -> StateFolder:
    """The state folder of a workspace that has no id: its real path is the key."""
    key = "path-" + sha256(os.fsencode(real)).hexdigest()[:32]
    return StateFolder(os.path.join(where, key), key)


def read_id(real: str) -> str | None:
    """The id that a workspace holds, or None."""
    try:
        handle = os.open(os.path.join(real, WORKSPACE_ID), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):  # a recorded path may hold anything, a NUL too
        return None
    try:
        text = os.read(handle, 200).decode("ascii", "replace").strip().lower()
    except OSError:
        return None
    finally:
        os.close(handle)
    return text if len(text) == 36 and _ID.issuperset(text) else None


def _recorded(folder: str) -> str | None:
    path = (read_json(os.path.join(folder, "workspace.json")) or {}).get("path")
    return path if isinstance(path, str) else None


def _is_copy(folder: str, real: str) -> bool:
    recorded = _recorded(folder)
    if recorded is None or recorded == real or read_id(recorded) != os.path.basename(folder):
        return False
    try:
        return not os.path.samefile(recorded, real)  # one folder may be reached by several paths
    except OSError:
        return False


def process_alive(pid: int) -> bool:
    """Whether some process of this machine has this id now; who asks must bear that ids are used again."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return not _is_unburied(pid)


def _is_unburied(pid: int) -> bool:
    """Whether it has died and nobody has asked how: in a container whose first process is no init it stays so."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as handle:
            return handle.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def process_birth(pid: int) -> str:
    """What tells a process from another one that has its id later: boot and start; empty where the system is silent."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as handle:
            # The name in brackets may hold anything, brackets included; the start is the 20th field behind it.
            return f"{boot_id()[:8]}-{int(handle.read().rpartition(b')')[2].split()[19])}"
    except (OSError, ValueError, IndexError):
        return ""


def read_json(path: str) -> dict[str, Any] | None:
    """A small JSON object of the state folder; None where there is none, or what stands there is damaged."""
    try:
        with open(path, encoding="utf-8") as handle:
            value = json.load(handle)
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_heartbeat(folder: StateFolder) -> dict[str, Any] | None:
    """The last heartbeat of the agent, or None."""
    return read_json(folder.heartbeat)


def silence(folder: StateFolder) -> float | None:
    """Seconds since the agent's last sign of life, the time of change of its heartbeat; None without one."""
    try:
        return max(time.time() - os.stat(folder.heartbeat).st_mtime, 0.0)
    except OSError:
        return None


def boot_id() -> str:
    """What tells one boot of this machine from another; empty where the system does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as handle:
            return handle.read().strip()
    except OSError:
        return ""
