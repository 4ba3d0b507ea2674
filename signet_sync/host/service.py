"""Installs, starts, lists and removes the agent's services, of systemd or launchd; every workspace has its own."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Unpack

from signet_sync.errors import UsageError
from signet_sync.host import launchd, systemd
from signet_sync.host.service_manager import BASE_NAME, Kind, Sandbox, ServiceChange, ServiceState, is_root

# Where the agent finds its files; without them it would use other paths than the shell that installed it.
PASSED_ON = (
    "XDG_CONFIG_HOME", "XDG_STATE_HOME", "SIGNET_CONFIG", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME",
)  # fmt: skip


def service_name(workspace: str, *, default: str) -> str:
    """Returns `signet-sync` for the default workspace, else `signet-sync-<slug>-<8 hex of sha256(real path)>`."""
    real = os.path.realpath(workspace)
    if real == os.path.realpath(default):
        return BASE_NAME
    slug = "-".join(re.findall(r"[a-z0-9]+", os.path.basename(real).lower()))[:32].strip("-") or "workspace"
    return f"{BASE_NAME}-{slug}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:8]}"


def render(
    kind: Kind,
    *,
    executable: Sequence[str],
    workspace: str,
    name: str,
    environment: Mapping[str, str] | None = None,
    **sandbox: Unpack[Sandbox],
) -> str:
    """Returns the unit's text for one workspace; `executable` is the command before signet-sync's own arguments.

    `environment` is passed to the agent. Paths are resolved, because a symlink in the home folder does not exist in the
    sandbox. Raises `UsageError` for what a unit cannot contain.
    """
    if not executable or not os.path.isabs(executable[0]):
        raise UsageError("a service needs the absolute path of the program", hint="name it from its root folder on")
    passed = dict(sorted((environment or {}).items()))
    workspace = os.path.realpath(workspace)
    if kind == "launchd":
        return launchd.render([*executable, "--workspace", workspace, "run"], name, passed)
    return systemd.render(kind, executable, workspace, passed, **sandbox)


def install(
    *,
    executable: Sequence[str],
    workspace: str,
    name: str,
    system: bool = False,
    linger: bool = False,
    environ: Mapping[str, str] = os.environ,
    **sandbox: Unpack[Sandbox],
) -> ServiceChange:
    """Writes, enables and starts the unit; returns what it did and what is left to do.

    `system`: a system unit for the user who called sudo (root only). `linger`: the user's services keep running after
    logout. Raises `UsageError` for what a unit cannot contain, `OSError` if its file cannot be written.
    """
    kind: Kind = "launchd" if _is_macos() else "systemd-system" if system else "systemd"
    command = [*executable, "--workspace", os.path.realpath(workspace)]
    if kind == "launchd" and system:
        return ServiceChange(kind, None, (), launchd.by_hand_login_only(command), False)
    if system and not is_root():
        return ServiceChange(kind, None, (), systemd.by_hand_as_root(command, name, environ), False)
    passed = {key: environ[key] for key in PASSED_ON if environ.get(key)}
    text = render(kind, executable=executable, workspace=workspace, name=name, environment=passed, **sandbox)
    if kind == "launchd":
        return launchd.install(text, name, environ)
    failure_text = systemd.render_failure(kind, executable=executable, environment=passed)
    return systemd.install(
        text,
        failure_text,
        name=name,
        workspace=workspace,
        run=[*command, "run"],
        system=system,
        linger=linger,
        environ=environ,
    )


def uninstall(*, name: str, system: bool = False, environ: Mapping[str, str] = os.environ) -> ServiceChange:
    """Stops and disables the unit, and removes its file; the workspace, its state and the user's drop-ins are kept."""
    return launchd.uninstall(name, environ) if _is_macos() else systemd.uninstall(name, system, environ)


def installed(environ: Mapping[str, str] = os.environ) -> list[ServiceState]:
    """Returns all our units of this user and of the system, whatever their workspace, ordered by name."""
    found = launchd.installed(environ) if _is_macos() else systemd.installed(environ)
    return sorted(found, key=lambda state: (state.name, state.path))


def lingering(environ: Mapping[str, str] = os.environ) -> bool | None:
    """Returns whether this user's services run without a login; None if logind is not available."""
    return systemd.lingering(environ)


def is_here(environ: Mapping[str, str] = os.environ) -> bool:
    """Returns whether this machine has a service manager."""
    return shutil.which("launchctl" if _is_macos() else "systemctl", path=environ.get("PATH", os.defpath)) is not None


def answers(environ: Mapping[str, str] = os.environ) -> bool:
    """Returns whether the service manager of this user answers; in a container there is often a program without one."""
    return launchd.answers(environ) if _is_macos() else systemd.answers(environ)


def outlives_login(state: ServiceState, environ: Mapping[str, str] = os.environ) -> bool | None:
    """Returns whether a unit keeps running when its user logs out; None if unknown."""
    if _is_macos():
        return False
    return True if systemd.is_of_the_system(state) else lingering(environ)


def restart_command(state: ServiceState) -> str:
    """Returns what a person types to start or restart a unit."""
    return launchd.restart_command(state) if _is_macos() else systemd.restart_command(state)


def restart(state: ServiceState, environ: Mapping[str, str] = os.environ) -> ServiceChange:
    """Starts or restarts a unit, including one that systemd gave up."""
    return launchd.restart(state, environ) if _is_macos() else systemd.restart(state, environ)


def missing_program(state: ServiceState, environ: Mapping[str, str] = os.environ) -> str | None:
    """Returns the program that a unit starts, or its interpreter, if it no longer exists."""
    words = launchd.started(state.path) if _is_macos() else systemd.started(state.name, state.path, environ)
    if words[:2] == ["/bin/sh", "-c"]:  # `systemd._startable`: the program comes after the script and its name
        words = words[4:]
    if not words or not os.path.isabs(words[0]):
        return None
    needed = filter(None, (words[0], _interpreter(words[0])))
    return next((path for path in needed if not os.access(path, os.X_OK)), None)


def _interpreter(script: str) -> str | None:
    """Returns the interpreter that a script's first line names, or None."""
    try:
        with open(script, "rb") as file:
            first = file.readline(4096)
    except OSError:
        return None
    words = first.removeprefix(b"#!").split()
    return os.fsdecode(words[0]) if first.startswith(b"#!") and words else None


def _is_macos() -> bool:
    return sys.platform == "darwin"
