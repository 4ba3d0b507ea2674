"""Notices a signet-sync that was installed while the agent runs: its service manager is to start that one."""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module

import signet_sync

# The agent's exit code for that: `EX_TEMPFAIL` of sysexits.h. systemd restarts on it (`RestartForceExitStatus=`),
# launchd on every code but 0; both wait long enough for an installer to finish.
EXIT_CODE = 75
# Commands and what only they need: each is a process of its own, which is of one version anyway.
_OF_COMMANDS = frozenset({"__main__", "admin", "cli", "embeddings", "fleet", "llm", "mcp_server", "migration", "web"})


class Upgrade:
    """Compares the installation with the one that this process began with; an installer replaces the compared file."""

    def __init__(self) -> None:
        self._ours = _signature()

    def is_due(self) -> bool:
        """Returns whether another version is installed; one that is being removed is no reason to end. One `stat`."""
        return _signature() not in (self._ours, None)


def is_restarted(environ: Mapping[str, str]) -> bool:
    """Returns whether this process belongs to a service of systemd or launchd, whose units restart the agent."""
    return "NOTIFY_SOCKET" in environ or environ.get("XPC_SERVICE_NAME", "").startswith("dev.signet-sync.agent")


def load_all() -> None:
    """Imports every module that a pass may need: those on the disk may be of another version when it does."""
    with suppress(ImportError):  # one is just being installed, or a library is missing
        for top in pkgutil.iter_modules(signet_sync.__path__, "signet_sync."):
            if top.name.partition(".")[2] not in _OF_COMMANDS:
                package = import_module(top.name)
                for module in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{top.name}."):
                    import_module(module.name)


def _signature() -> tuple[int, int, int, int] | None:
    try:
        status = os.stat(signet_sync.__file__)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
