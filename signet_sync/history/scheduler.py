"""Schedules the agent's commits: some quiet time after sessions have ended, in a separate process."""

from __future__ import annotations

import math
import time

from signet_sync.history import operations as history_operations
from signet_sync.host.command import Command
from signet_sync.log import logger
from signet_sync.storage.locations import now_us
from signet_sync.sync.workspace import Workspace

QUIET = 30.0  # seconds after a session's end
LONGEST = 10  # times the quiet time, after which a vault that is never quiet is committed
RETRY_WAIT = 600.0  # seconds to wait after a failed commit
_MOMENT = 1.0  # seconds until the next check of a running process


class CommitScheduler:
    """Runs at most one process at a time, which commits what ended since the last commit; used by one thread.

    `due` is when there is something to do, an instant of `time.monotonic`. The first commit of a large vault takes
    long, and a repository may be on a slow disk: neither may delay the watch. An error is logged once, and retried.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.due = math.inf
        self._workspace = workspace
        self._process: Command | None = None
        self._first = math.inf
        self._not_before = 0.0
        self._last_error = ""

    def note_change(self) -> None:
        """Postpones the commit until the vault is quiet, because something in it changed, perhaps a session's end."""
        if not self._workspace.settings.history_enabled:
            return
        now = time.monotonic()
        self._first = min(self._first, now)
        if self._process is None:
            self.due = max(min(now + QUIET, self._first + LONGEST * QUIET), self._not_before)

    def run_due(self) -> None:
        """Starts the process if one is due, and checks how the last one ended."""
        now, process = time.monotonic(), self._process
        if process is not None:
            code = process.poll()
            if code is None:
                self.due = now + _MOMENT
                return
            self._process = None
            if code == 0:
                self.due = now + QUIET if self._first < math.inf else math.inf  # what changed meanwhile
                self._not_before, self._last_error = 0.0, ""
            else:
                self.due = self._not_before = now + RETRY_WAIT
                error = process.said.strip() or f"the process ended with {code}"
                if error != self._last_error:
                    logger.warning("the history was not written; it will be retried automatically: {}", error)
                self._last_error = error
        if now < self.due:
            return
        self.due = self._first = math.inf
        if history_operations.is_due(self._workspace, now_us()):
            self._process = Command(*self._workspace.options, "history", "close-sessions")
            self.due = now + _MOMENT

    def stop(self) -> None:
        """Stops tracking the process: a commit is complete or absent, even if the process is killed."""
        if self._process is not None:
            self._process.leave()
            self._process = None
