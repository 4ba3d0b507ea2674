"""Notices a signet-sync that was installed while the agent runs: its service manager is to start that one."""

from __future__ import annotations

import os
from collections.abc import Mapping

import signet_sync

# The agent's exit code for that: `EX_TEMPFAIL` of sysexits.h. systemd restarts on it (`RestartForceExitStatus=`),
# launchd on every code but 0; both wait long enough for an installer to finish.
EXIT_CODE = 75


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


def _signature() -> tuple[int, int, int, int] | None:
    try:
        status = os.stat(signet_sync.__file__)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
