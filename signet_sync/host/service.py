"""Installs, starts, lists and removes the agent's services, of systemd or launchd; every workspace has its own."""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType

from signet_sync.host import launchd, systemd
from signet_sync.host.service_manager import BASE_NAME, ServiceChange, ServiceState

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


def install(
    *,
    executable: Sequence[str],
    workspace: str,
    name: str,
    network: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> ServiceChange:
    """Writes, enables and starts the unit of one workspace; returns what it did and what is left to do.

    `executable` is the command before signet-sync's own arguments, its program an absolute path; `network` lets the
    agent call a language model. Raises `UsageError` for what a unit cannot contain, `OSError` if its file cannot be
    written.
    """
    run = [*executable, "--workspace", os.path.realpath(workspace), "run"]
    passed = {key: environ[key] for key in sorted(PASSED_ON) if environ.get(key)}
    if manager() is launchd:
        return launchd.install(launchd.render(run, name, passed), name, environ)
    return systemd.install(systemd.render(run, passed, network=network), name=name, run=run, environ=environ)


def uninstall(*, name: str, environ: Mapping[str, str] = os.environ) -> ServiceChange:
    """Stops and disables the unit, and removes its file; the workspace, its state and the user's drop-ins are kept."""
    done: ServiceChange = manager().uninstall(name, environ)
    return done


def list_installed(environ: Mapping[str, str] = os.environ) -> list[ServiceState]:
    """Returns all our units of this user, whatever their workspace, ordered by name."""
    return sorted(manager().list_installed(environ), key=lambda state: (state.name, state.path))


def manager() -> ModuleType:
    """Returns the module of this machine's service manager; its `answers` says whether that is more than a program."""
    return launchd if sys.platform == "darwin" else systemd
