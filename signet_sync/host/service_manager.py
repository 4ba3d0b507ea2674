"""Calls service managers and writes their files: what systemd and launchd have in common.

Programs of the operating system are called with argument lists and a time limit; a call that fails becomes a command
for the user (`ServiceChange.by_hand`), never an exception.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Literal

from signet_sync.errors import SignetSyncError, UsageError
from signet_sync.storage.durable import publish, unlink

Kind = Literal["systemd", "launchd"]
BASE_NAME = "signet-sync"
TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class ServiceState:
    """A unit of ours; `active` is None if the service manager is not available."""

    name: str
    workspace: str | None
    path: str
    active: bool | None


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """What a program of the operating system returned: whether it succeeded, its output, the reason if it failed."""

    ok: bool
    out: str
    err: str


@dataclass(slots=True)
class ServiceChange:
    """What was done, as sentences (`steps`), and what is left to do, as shell commands (`by_hand`).

    Lines of `by_hand` that begin with `#` explain the command below them. `path` is the unit's file, None if none was
    written or found; `running` is the state that the service manager reports at the end.
    """

    kind: Kind
    path: str | None
    steps: list[str] = field(default_factory=list)
    by_hand: list[str] = field(default_factory=list)
    running: bool = False

    def record(self, result: ProgramResult, command: str, done: str = "") -> bool:
        """Records a call of the service manager: a step, or the same command for the user, with the reason."""
        if result.ok:
            self.steps += [done] if done else []
        else:
            self.by_hand += ["# not done: " + result.err, command]
        return result.ok

    def write(self, path: str, text: str) -> None:
        """Writes a service manager's file completely or not at all."""
        data = text.encode("utf-8")
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as old:
            if old.read() == data:
                self.steps.append(f"{path} is up to date")
                return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(publish(path, data, 0o644))
        self.steps.append(f"wrote {path}")

    def remove(self, path: str) -> None:
        """Removes a file if it exists."""
        if unlink(path):
            self.steps.append(f"removed {path}")


def template(name: str) -> str:
    """Returns the text of a shipped unit, from the installed package or the checkout. Raises `SignetSyncError`."""
    packaged = resources.files("signet_sync.host").joinpath("units", name)
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    checkout = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = os.path.join(checkout, "launchd" if name.endswith(".plist") else "systemd", name)
    try:
        with open(path, encoding="utf-8") as handle:
            return handle.read()
    except FileNotFoundError as error:
        hint = "install signet-sync again"
        raise SignetSyncError("the unit is not part of this installation", path=path, hint=hint) from error


def check_nameable(text: str) -> None:
    """Raises `UsageError` for a path that no unit can contain."""
    if any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in text):
        hint = "rename the folder, or start `signet-sync run` by other means"
        raise UsageError("a service cannot name a path with control characters or broken text", path=text, hint=hint)


def user_name() -> str:
    """Returns the user's login name, or the number if there is none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def call(command: Sequence[str], environ: Mapping[str, str], timeout: float = TIMEOUT) -> ProgramResult:
    """Runs a program of the operating system; a missing program, an error and a timeout are answers, too."""
    program = shutil.which(command[0], path=environ.get("PATH", os.defpath))
    if program is None:
        return ProgramResult(False, "", f"there is no {command[0]} on this machine")
    # `su` and cron lose the variable that locates a user's manager and bus.
    folder = f"/run/user/{os.getuid()}"
    known = {"XDG_RUNTIME_DIR": folder} if os.path.isdir(folder) else {}
    try:
        ended = subprocess.run(
            [program, *command[1:]],
            env=known | dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ProgramResult(False, "", f"{command[0]} did not answer within {timeout:g} s")
    except OSError as error:
        return ProgramResult(False, "", f"{command[0]}: {error.strerror}")
    out, err = (raw.decode("utf-8", "replace") for raw in (ended.stdout, ended.stderr))
    return ProgramResult(ended.returncode == 0, out, err.split("\n")[0].strip() or f"exit {ended.returncode}")


def names_in(folder: str) -> list[str]:
    """Returns the names in a folder, in order; empty if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
