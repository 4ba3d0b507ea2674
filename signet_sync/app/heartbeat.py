"""Publishes the state of the running agent: the heartbeat file and one line for the service manager."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from signet_sync.formats.timestamps import iso
from signet_sync.host.sd_notify import Notifier
from signet_sync.storage import state_dir
from signet_sync.storage.clock import now_us
from signet_sync.storage.state_dir import StateFolder
from signet_sync.text.sanitizer import redact

# The file is touched at most this often, in seconds; `status` allows many times as long before it reports silence.
TOUCH = 5.0


class Heartbeat:
    """The agent's named state and its heartbeat.

    The heartbeat file is written when the state changes and only touched in between: its modification time shows that
    the agent is alive, its content what the agent last reported. `details` returns the rest of the content. Nothing
    here raises: an agent whose state folder is full still does its work, and the ageing heartbeat shows the problem.
    """

    def __init__(self, notifier: Notifier, details: Callable[[], Mapping[str, object]]) -> None:
        self.state = "starting"
        self.since = iso(now_us())
        self._notifier = notifier
        self._details = details
        self._folder: StateFolder | None = None
        self._written = False
        self._touched = 0.0

    def write_to(self, folder: StateFolder) -> None:
        """Writes the heartbeat to this state folder from now on."""
        if self._folder is not None and self._folder != folder:
            self.end()
        self._folder = folder
        self._written = False

    def set_state(self, name: str) -> None:
        """Changes to a named state."""
        if name != self.state:
            self.state = name
            self.since = iso(now_us())
            self._notifier.status(name)
        elif self._written:
            return
        self.write()

    def write(self) -> None:
        """Writes the heartbeat file again after a change of its content."""
        if self._folder is None:
            return
        self._written = False
        with suppress(OSError):
            content: dict[str, object] = {"state": self.state, "since": self.since, **self._details()}
            for name in ("state", "trouble"):  # they may quote a path or a setting
                if isinstance(text := content.get(name), str):
                    content[name] = redact(text)[0]
            state_dir.write_heartbeat(self._folder, content)
            self._written = True
            self._touched = time.monotonic()

    def touch(self) -> None:
        """Touches the heartbeat file, the cheapest way to show that the agent is alive."""
        now = time.monotonic()
        if self._folder is None or now - self._touched < TOUCH:
            return
        self._touched = now
        if self._written:
            try:
                os.utime(self._folder.heartbeat)
                return
            except OSError:
                pass  # it was deleted
        self.write()

    def end(self) -> None:
        """Deletes the heartbeat file: the agent ended normally."""
        if self._folder is not None:
            with suppress(OSError):
                os.unlink(self._folder.heartbeat)
        self._written = False
