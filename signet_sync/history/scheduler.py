"""When the agent commits what sessions have left: some quiet time after they have ended, in a process beside it."""

from __future__ import annotations

import math
import subprocess
import time

from loguru import logger

from signet_sync.capture.worker import let_go, started
from signet_sync.history import operations as history_operations
from signet_sync.pages.stage import now_us
from signet_sync.sync.workspace import Workspace

# A vault that is never quiet is committed after so many times the quiet time.
LONGEST = 10
# After a commit that failed, and at most; in seconds.
PATIENCE = 60.0
LONGEST_PATIENCE = 3600.0
_MOMENT = 1.0  # seconds until another look at a process that is still at it
_LINE = 600  # characters of what a process said that are worth a warning


class Committing:
    """At most one process at a time, which commits what has ended since the last one; used by one thread.

    `due` is when there is something to do, an instant of `time.monotonic`. The first commit of a large vault takes
    long, and a repository may stand on a slow disk: neither may hold up the watch. Trouble is said once, and tried
    again with growing patience.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.due = math.inf
        self._workspace = workspace
        self._process: subprocess.Popen[bytes] | None = None
        self._first = math.inf
        self._not_before = 0.0
        self._failures = 0
        self._said = ""

    def hear(self) -> None:
        """Something moved in the vault, perhaps a session has ended: puts off what is due until it is quiet."""
        settings = self._workspace.settings
        if not settings.history_enabled:
            return
        now = time.monotonic()
        self._first = min(self._first, now)
        quiet = min(now + settings.history_debounce, self._first + LONGEST * settings.history_debounce)
        self.due = max(quiet, self._not_before)

    def work(self) -> None:
        """Starts the process where one is due, and notices how the last one ended."""
        now = time.monotonic()
        if self._is_running():
            self.due = max(self.due, now + _MOMENT)
            return
        if now < self.due:
            return
        self.due = self._first = math.inf
        if history_operations.is_due(self._workspace, now_us()):
            self._process = started(self._workspace, "history", "close-sessions", stderr=subprocess.PIPE)

    def leave(self) -> None:
        """Lets go of the process: a commit is whole or not there, whether it ends by itself or is ended."""
        if self._process is not None:
            if self._process.stderr is not None:
                self._process.stderr.close()
            let_go(self._process)
            self._process = None

    def _is_running(self) -> bool:
        process = self._process
        if process is None:
            return False
        code = process.poll()
        if code is None:
            return True
        self._process = None
        words = ""
        if process.stderr is not None:
            with process.stderr:
                words = process.stderr.read().decode("utf-8", "replace").strip()
        self._judge(code, words)
        return False

    def _judge(self, code: int, words: str) -> None:
        if code == 0:
            self._failures, self._not_before, self._said = 0, 0.0, ""
            return
        self._failures += 1
        patience = min(PATIENCE * 2.0 ** (self._failures - 1), LONGEST_PATIENCE)
        self._not_before = time.monotonic() + patience
        self.due = self._not_before
        said = words[-_LINE:] or f"the process ended with {code}"
        if said != self._said:
            self._said = said
            logger.warning("the history was not written, it is tried again by itself: {}", said)
