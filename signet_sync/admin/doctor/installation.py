"""Describes what is examined, one workspace on this machine, and one finding: what was found, and the next step."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import apsw

from signet_sync.errors import SignetSyncError
from signet_sync.host import service
from signet_sync.host.service_manager import ServiceState
from signet_sync.settings import model
from signet_sync.settings.model import Settings
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database
from signet_sync.storage.locations import locate_workspace

_Result = TypeVar("_Result")


def access_command(path: str, mode: str) -> str:
    """Returns the command that restores the user's access to a path."""
    try:
        mine = os.lstat(path).st_uid == os.geteuid()
    except OSError:
        mine = True
    return f"chmod {mode} {shlex.quote(path)}" if mine else f'sudo chown "$USER" {shlex.quote(path)}'


class Installation:
    """A workspace, its state folder and database, its agent and its service.

    `chosen` is the database if it is not the one of the state folder; `now` is in seconds since 1970.
    """

    def __init__(self, root: str, database: str) -> None:
        self.root = root
        self.database = database
        self.folder = state_dir.locate(root)
        self.chosen = None if database == self.folder.database else database
        self.now = time.time()

    def query(self, read: Callable[[Database], _Result]) -> _Result | None:
        """Returns what `read` finds in the index; None if it cannot be read, which a check of its own reports."""
        with suppress(apsw.Error, OSError, SignetSyncError), closing(Database(self.database, readonly=True)) as found:
            return read(found)
        return None

    def command(self, words: str) -> str:
        """Returns a command line that can be pasted into a shell; names workspace and database only if necessary."""
        place = [] if self.root == locate_workspace(None) else ["--workspace", self.root]
        if self.chosen is not None and not os.environ.get("SIGNET_DB"):
            place += ["--db", self.chosen]
        return f"{shlex.join(['signet-sync', *place])} {words}"

    @property
    def is_unreadable(self) -> bool:
        """Returns whether the state folder cannot be read."""
        return state_dir.is_inaccessible(self.folder)

    @cached_property
    def settings(self) -> Settings:
        """Returns the settings; problems with them are a finding of their own."""
        return model.load(self.root, anyway=True)[0]

    @cached_property
    def alive(self) -> bool:
        """Returns whether an agent holds the workspace: the kernel's lock decides, whatever files say."""
        return not self.is_unreadable and state_dir.run_lock_holder(self.folder)

    @cached_property
    def heartbeat(self) -> Mapping[str, Any]:
        """Returns the agent's last heartbeat; empty if there is none."""
        return state_dir.read_heartbeat(self.folder) or {}

    @cached_property
    def heartbeat_age(self) -> float | None:
        """Returns the seconds since the agent's last heartbeat; None without one."""
        return state_dir.silence(self.folder)

    @property
    def pid(self) -> int | None:
        """Returns the running agent's process id, from its heartbeat."""
        pid = self.heartbeat.get("pid") if self.alive else None
        ours = type(pid) is int and self.heartbeat.get("boot") == state_dir.boot_id() and state_dir.process_alive(pid)
        return pid if ours else None

    @cached_property
    def units(self) -> list[ServiceState]:
        """Returns all our units on this machine."""
        return service.list_installed()

    @property
    def unit(self) -> ServiceState | None:
        """Returns the unit of this workspace."""
        real = os.path.realpath(self.root)
        mine = (unit for unit in self.units if unit.workspace and os.path.realpath(unit.workspace) == real)
        return next(mine, None)

    def start_command(self) -> str:
        """Returns the command that starts the agent, or restarts it."""
        unit = self.unit
        if unit is not None and unit.active is not None:
            restart: str = service.manager().restart_command(unit)
            return restart
        if self.alive:
            return f"kill {self.pid}; {self.command('run')}" if self.pid else self.command("run")
        can_have = self.chosen is None and unit is None and service.manager().answers(os.environ)
        return self.command("service install" if can_have else "run")


Level = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    `name` is stable, for programs; `remedy` is what to do, a command that can be typed as it is if there is one.
    """

    name: str
    level: Level
    message: str
    remedy: str = ""


def span(seconds: float) -> str:
    """Returns a duration as text for the user."""
    for unit, length in (("days", 86_400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} seconds"


def fine(name: str, message: str) -> Finding:
    """Makes a finding without a problem."""
    return Finding(name, "ok", message)


def warning(name: str, message: str, remedy: str) -> Finding:
    """Makes a finding of something that works, but not as well as it could, or not for long."""
    return Finding(name, "warning", message, remedy)


def problem(name: str, message: str, remedy: str) -> Finding:
    """Makes a finding of something that does not work, or gives wrong answers."""
    return Finding(name, "problem", message, remedy)
