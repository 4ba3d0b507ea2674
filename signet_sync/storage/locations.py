"""Finds a workspace, its state folder and the user's settings. Standard library only, cheap enough for a hook.

Every hook of a harness pays for what is imported here: no dataclasses, no sockets, no dependencies. The folders are
those that `platformdirs` names (ensured by a test).
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from hashlib import sha256

from signet_sync.formats.paths import DEFAULT_AGENT, SETTINGS, WORKSPACE_ID, write_agent_option

TYPE_CHECKING = False  # same as in `typing`, without the milliseconds of importing it
if TYPE_CHECKING:
    from typing import Any

DEFAULT_WORKSPACE = "~/.agents"
# Without a heartbeat for this many seconds the agent hangs; a healthy one writes four a minute.
SILENCE = 120.0
_ID = frozenset("0123456789abcdef-")
NAME = "signet-sync"
_PLACES = frozenset({"SIGNET_WORKSPACE", "SIGNET_DB", "SIGNET_STATE", "SIGNET_CONFIG"})


class StateFolder:
    """Paths of one workspace's state; nothing is made before it is needed."""

    __slots__ = (
        "backups", "database", "harnesses", "heartbeat", "injected", "journal", "key", "live", "locks", "logs",
        "path", "settings", "spool",
    )  # fmt: skip

    def __init__(self, path: str, key: str) -> None:
        self.path = path
        self.key = key
        self.database = os.path.join(path, "signet-sync.db")
        self.heartbeat = os.path.join(path, "heartbeat.json")
        self.harnesses = os.path.join(path, "harnesses.json")
        self.settings = os.path.join(path, "settings.json")
        self.backups = os.path.join(path, "backups")
        self.injected = os.path.join(path, "injected")
        self.journal = os.path.join(path, "journal")
        self.live = os.path.join(path, "live")
        self.locks = os.path.join(path, "locks")
        self.logs = os.path.join(path, "logs")
        self.spool = os.path.join(path, "spool")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StateFolder) and (self.path, self.key) == (other.path, other.key)


def locate_workspace(flag: str | None) -> str:
    """Returns the workspace root as an absolute path: `--workspace`, else `SIGNET_WORKSPACE`, else `~/.agents`."""
    chosen = flag or os.environ.get("SIGNET_WORKSPACE") or DEFAULT_WORKSPACE
    return os.path.abspath(os.path.expanduser(chosen))


def write_program(root: str, agent_id: str = DEFAULT_AGENT) -> str:
    """Returns the beginning of a command line for a shell; it names workspace and agent only if necessary."""
    place = ""
    if root != locate_workspace(None):
        from shlex import quote  # most hooks are of the default workspace

        place = f" --workspace {quote(root)}"
    return f"signet-sync{place}{write_agent_option(agent_id)}"


def make_relative(root: str, given: str) -> str:
    """Returns a path as the workspace has it, if it is one as a shell completes it; else what was given.

    `given` may be relative to the current folder, or absolute, with `#` and a line at its end; a file or a pattern need
    not exist. Other names stay.
    """
    path, _, line = given.rpartition("#")
    if path and line.isdigit():
        return f"{make_relative(root, path)}#{line}"
    if not given.endswith((".md", "*", "?")) or ("/" not in given and not os.path.lexists(given)):
        return given
    folder, name = os.path.split(os.path.abspath(given))
    whole = os.path.join(os.path.realpath(folder), name)
    here = os.path.relpath(whole, os.path.realpath(root))
    plain = os.path.normpath(given)
    plainly = plain.startswith("memory" + os.sep) or os.path.lexists(os.path.join(root, plain))
    outside = here.startswith(os.pardir) or (plainly and not os.path.lexists(whole))
    return (plain if outside else here).replace(os.sep, "/")


def user_file(environ: Mapping[str, str] = os.environ) -> str:
    """Returns the path of the user's own settings file; `SIGNET_CONFIG` moves it."""
    moved = environ.get("SIGNET_CONFIG")
    if moved:
        return os.path.abspath(os.path.expanduser(moved))
    return os.path.join(_platform_folder(environ, "XDG_CONFIG_HOME", "~/.config"), "config.toml")


def has_settings(root: str) -> bool:
    """Returns whether anything may be set, unread: a settings file exists, or a variable that is no location."""
    named = any(name.startswith("SIGNET_") and name not in _PLACES for name in os.environ)
    return named or os.path.lexists(os.path.join(root, SETTINGS)) or os.path.lexists(user_file())


def base(environ: Mapping[str, str] = os.environ) -> str:
    """Returns the folder that holds the state folder of every workspace; `SIGNET_STATE` moves it."""
    moved = environ.get("SIGNET_STATE")
    if moved:
        return os.path.abspath(os.path.expanduser(moved))
    return _platform_folder(environ, "XDG_STATE_HOME", "~/.local/state")


def _platform_folder(environ: Mapping[str, str], variable: str, usual: str) -> str:
    """Returns our folder in the system's usual location; a relative path in the variable is ignored (XDG)."""
    chosen = environ.get(variable, "")
    if not os.path.isabs(chosen):
        chosen = os.path.expanduser("~/Library/Application Support" if sys.platform == "darwin" else usual)
    return os.path.join(chosen, NAME)


def locate(root: str, environ: Mapping[str, str] = os.environ) -> StateFolder:
    """Returns the state folder of a workspace, by its id, else by its real path. Writes nothing."""
    real = os.path.realpath(root)
    where = base(environ)
    folder = locate_by_id(where, real)
    if folder is None and read_id(real) is None:
        folder = locate_by_record(where, real)
    return folder or locate_by_path(where, real)


def locate_by_id(where: str, real: str) -> StateFolder | None:
    """Returns the state folder of the workspace's id; None without an id, or if a copy has the id of its original.

    A sync service may have replaced our id by another machine's: an id that is unknown here does not make a workspace
    whose path is known another one.
    """
    found = read_id(real)
    if found is None:
        return None
    folder = os.path.join(where, found)
    if _read_record(folder) is None:
        return locate_by_record(where, real) or StateFolder(folder, found)
    return None if _is_copy(folder, real) else StateFolder(folder, found)


def locate_by_record(where: str, real: str) -> StateFolder | None:
    """Returns the state folder that recorded this real path, for a workspace that has lost its id."""
    try:
        names = sorted(os.listdir(where))
    except OSError:
        return None
    for name in names:
        if is_id(name) and _read_record(os.path.join(where, name)) == real:
            return StateFolder(os.path.join(where, name), name)
    return None


def locate_by_path(where: str, real: str) -> StateFolder:
    """Returns the state folder of a workspace that has no id: its real path is the key."""
    key = "path-" + sha256(os.fsencode(real)).hexdigest()[:32]
    return StateFolder(os.path.join(where, key), key)


def read_id(real: str) -> str | None:
    """Returns the id of a workspace, or None."""
    try:
        handle = os.open(os.path.join(real, WORKSPACE_ID), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError):  # a recorded path may contain anything, also NUL
        return None
    try:
        text = os.read(handle, 200).decode("ascii", "replace").strip().lower()
    except OSError:
        return None
    finally:
        os.close(handle)
    return text if is_id(text) else None


def is_id(name: str) -> bool:
    """Returns whether this is a workspace's id, and the name of its state folder."""
    return len(name) == 36 and _ID.issuperset(name)


def _read_record(folder: str) -> str | None:
    path = (read_json(os.path.join(folder, "workspace.json")) or {}).get("path")
    return path if isinstance(path, str) else None


def _is_copy(folder: str, real: str) -> bool:
    recorded = _read_record(folder)
    if recorded is None or recorded == real or read_id(recorded) != os.path.basename(folder):
        return False
    try:
        return not os.path.samefile(recorded, real)  # one folder may be reached by several paths
    except OSError:
        return False


def process_alive(pid: int) -> bool:
    """Returns whether a process of this machine has this id now; ids are used again, which callers have to accept."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return not _is_unburied(pid)


def _is_unburied(pid: int) -> bool:
    """Returns whether it is dead but not yet reaped: in a container whose first process is no init it stays so."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as handle:
            return handle.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def read_json(path: str) -> dict[str, Any] | None:
    """Reads a small JSON object of the state folder; None if there is none, or it is damaged."""
    try:
        with open(path, encoding="utf-8") as handle:
            value = json.load(handle)
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_heartbeat(folder: StateFolder) -> dict[str, Any] | None:
    """Returns the last heartbeat of the agent, or None."""
    return read_json(folder.heartbeat)


def silence(folder: StateFolder) -> float | None:
    """Returns the seconds since the agent's last heartbeat, by its modification time; None without one."""
    try:
        return max(time.time() - os.stat(folder.heartbeat).st_mtime, 0.0)
    except OSError:
        return None


def boot_id() -> str:
    """Returns what distinguishes one boot of this machine from another; "" if the system does not say."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as handle:
            return handle.read().strip()
    except OSError:
        return ""


def now_us() -> int:
    """Returns the present, in microseconds since 1970 UTC; everything else that depends on the time is given it."""
    return time.time_ns() // 1000
