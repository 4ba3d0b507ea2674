"""Installs, starts, lists and removes the agent's services, of systemd or launchd; every workspace has its own."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping, Sequence

from signet_sync.errors import UsageError
from signet_sync.host import launchd, systemd
from signet_sync.host.service_manager import BASE_NAME, Kind, ServiceChange, ServiceState

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
    network: bool = False,
) -> str:
    """Returns the unit's text for one workspace; `executable` is the command before signet-sync's own arguments.

    `environment` is passed to the agent; `network` lets it call a language model. Raises `UsageError` for what a unit
    cannot contain.
    """
    if not executable or not os.path.isabs(executable[0]):
        raise UsageError("a service needs the absolute path of the program", hint="name it from its root folder on")
    passed = dict(sorted((environment or {}).items()))
    workspace = os.path.realpath(workspace)
    if kind == "launchd":
        return launchd.render([*executable, "--workspace", workspace, "run"], name, passed)
    return systemd.render(executable, workspace, passed, network=network)


def install(
    *,
    executable: Sequence[str],
    workspace: str,
    name: str,
    network: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> ServiceChange:
    """Writes, enables and starts the unit; returns what it did and what is left to do.

    Raises `UsageError` for what a unit cannot contain, `OSError` if its file cannot be written.
    """
    kind: Kind = "launchd" if _is_macos() else "systemd"
    passed = {key: environ[key] for key in PASSED_ON if environ.get(key)}
    text = render(kind, executable=executable, workspace=workspace, name=name, environment=passed, network=network)
    if kind == "launchd":
        return launchd.install(text, name, environ)
    run = [*executable, "--workspace", os.path.realpath(workspace), "run"]
    return systemd.install(text, name=name, run=run, environ=environ)


def uninstall(*, name: str, environ: Mapping[str, str] = os.environ) -> ServiceChange:
    """Stops and disables the unit, and removes its file; the workspace, its state and the user's drop-ins are kept."""
    return launchd.uninstall(name, environ) if _is_macos() else systemd.uninstall(name, environ)


def list_installed(environ: Mapping[str, str] = os.environ) -> list[ServiceState]:
    """Returns all our units of this user, whatever their workspace, ordered by name."""
    found = launchd.list_installed(environ) if _is_macos() else systemd.list_installed(environ)
    return sorted(found, key=lambda state: (state.name, state.path))


def lingering(environ: Mapping[str, str] = os.environ) -> bool | None:
    """Returns whether this user's services run without a login; None if logind is not available."""
    return systemd.lingering(environ)


def answers(environ: Mapping[str, str] = os.environ) -> bool:
    """Returns whether the service manager of this user answers; in a container there is often a program without one."""
    return launchd.answers(environ) if _is_macos() else systemd.answers(environ)


def restart_command(state: ServiceState) -> str:
    """Returns what a person types to start or restart a unit."""
    return launchd.restart_command(state) if _is_macos() else systemd.restart_command(state)


def _is_macos() -> bool:
    return sys.platform == "darwin"
