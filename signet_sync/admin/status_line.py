"""Describes a workspace in one line for prompts and status bars: a few numbers, no word of a session.

It is printed many times a minute: only light modules are imported, and no lock is taken. What cannot be read is named
instead of a number.
"""

from __future__ import annotations

import os
import time
from contextlib import closing

from signet_sync.errors import SignetSyncError
from signet_sync.storage import locations
from signet_sync.text.phrases import counted

NAME = "signet-sync"
_WAIT_MS = 50
_DAYLIGHT = -1  # unknown: `mktime` finds out
TYPE_CHECKING = False  # same as in `typing`, without importing it
if TYPE_CHECKING:
    from signet_sync.storage.locations import StateFolder


def plain(arguments: list[str]) -> str | None:
    """Returns the line for `[--workspace PATH] status --line`; None for any other command line, which click parses."""
    rest, chosen = list(arguments), None
    if "--workspace" in rest[:-1]:
        at = rest.index("--workspace")
        chosen = rest[at + 1]
        del rest[at : at + 2]
    if rest != ["status", "--line"] or (chosen or "").startswith("-"):
        return None
    return line(locations.locate_workspace(chosen), os.environ.get("SIGNET_DB"))


def line(root: str, database: str | None = None) -> str:
    """Returns the state of the agent, the sessions of today, problems and backlog; what is zero is left out."""
    try:
        if not os.path.isdir(root):
            return f"{NAME}: no workspace"
        folder = locations.locate(root)
        said = [*_agent(folder), *_index(database or folder.database), *_waiting(folder)]
    except (OSError, SignetSyncError):  # `status` and `doctor` say which
        said = ["not available"]
    return f"{NAME}: {' · '.join(said)}"


def _agent(folder: StateFolder) -> list[str]:
    """Returns the state by the heartbeat; looking at the run lock would be in the way of an agent that starts."""
    beat = locations.read_heartbeat(folder) or {}
    pid, silence = beat.get("pid"), locations.silence(folder)
    if not isinstance(pid, int) or beat.get("boot") != locations.boot_id() or not locations.process_alive(pid):
        return ["not running"]
    if silence is None or silence >= locations.SILENCE:
        return ["not responding"]
    state = str(beat.get("state", "starting")).partition(":")[0]
    return [state, "trouble"] if beat.get("trouble") else [state]


def _index(path: str) -> list[str]:
    if not os.path.exists(path):
        return ["no index"]
    from signet_sync.storage.database.connection import UNREADABLE, Database  # loads SQLite
    from signet_sync.sync import outbox  # as above
    from signet_sync.sync.store import counts  # as above

    try:
        database = Database(path, readonly=True, wait_ms=_WAIT_MS, traceless=True)
        with closing(database.connection):
            today = counts.sessions_since(database, _midnight_us())
            wrong = counts.problem_count(database)
            backlog = outbox.backlog(database)
    except UNREADABLE:
        return ["index unreadable"]
    return [
        f"{counted(today, 'session')} today",
        *([counted(wrong, "problem")] if wrong else []),
        *([f"{backlog} to process"] if backlog else []),
    ]


def _waiting(folder: StateFolder) -> list[str]:
    """Returns how many jobs of hooks wait to be read; stop markers of running sessions are none."""
    try:
        names = os.listdir(folder.spool)
    except OSError:
        return []
    number = sum(name.endswith(".json") and not name.startswith("stop-") for name in names)
    return [f"{number} waiting"] if number else []


def _midnight_us() -> int:
    """Returns when today began, where the person is, as microseconds since 1970 UTC."""
    now = time.localtime()
    return int(time.mktime((now.tm_year, now.tm_mon, now.tm_mday, 0, 0, 0, 0, 0, _DAYLIGHT))) * 1_000_000
