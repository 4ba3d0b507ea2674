"""Runs what an extra wants done from time to time, in a process of its own: entry points name the commands."""

from __future__ import annotations

import math
import random
import time
from typing import TYPE_CHECKING

from signet_sync.capture.worker import detach, start_command
from signet_sync.log import logger
from signet_sync.sync.workspace import Workspace

if TYPE_CHECKING:
    import subprocess

GROUP = "signet_sync.timers"
_BEAT = 1.0  # seconds between looks whether the process has ended


class Timers:
    """Starts one command at a time, as long as the person's own settings name a place to share with."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._process: subprocess.Popen[bytes] | None = None
        # The agents of many machines start in the morning, and must not all come at once.
        self._next = time.monotonic() + random.uniform(0.0, 1.0) * workspace.settings.fleet_interval  # noqa: S311

    @property
    def due(self) -> float:
        """Returns when there is something to do, by the monotonic clock."""
        if self._process is not None:
            return time.monotonic() + _BEAT
        return self._next if self._workspace.settings.fleet_url else math.inf

    def run_due(self) -> None:
        """Starts the command if it is time; says in the log why the last one failed."""
        if self._process is not None:
            if self._process.poll() is None:
                return
            said = self._process.communicate()[1].decode("utf-8", "replace").strip()
            if self._process.returncode:
                logger.warning("{} ended with {}: {}", GROUP, self._process.returncode, said[:1000])
            self._process = None
        if self.due > time.monotonic():
            return
        from importlib.metadata import entry_points  # looks at every package: only where there is a place to share with
        from subprocess import PIPE

        self._next = time.monotonic() + self._workspace.settings.fleet_interval
        for found in entry_points(group=GROUP):
            self._process = start_command(self._workspace, *found.name.split("-"), stderr=PIPE)

    def leave(self) -> None:
        """Stops waiting for the command, which goes on."""
        if self._process is not None:
            if self._process.stderr is not None:
                self._process.stderr.close()
            detach(self._process)
