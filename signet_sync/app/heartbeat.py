"""Publishes the state of the running agent: the heartbeat file and `sd_notify(3)`, silent without `$NOTIFY_SOCKET`."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from signet_sync.storage import state_dir
from signet_sync.storage.state_dir import StateFolder
from signet_sync.text.sanitizer import redact


class Notifier:
    """Reports the agent's state to systemd; without a socket nothing is sent, and nothing ever raises.

    `$NOTIFY_SOCKET` is the path of a datagram socket (source: sd_notify(3)). `interval` is seconds between two signs
    of life, half of the limit in `$WATCHDOG_USEC`; None if none is set for this process (source:
    sd_watchdog_enabled(3)). They come from the loop that does the work, so that one that hangs is restarted.
    """

    READY, STOPPING, ALIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"

    def __init__(self) -> None:
        name = os.environ.get("NOTIFY_SOCKET", "")
        self._address = name if name.startswith("/") else None
        self.interval: float | None = None
        with suppress(KeyError, ValueError):
            limit = int(os.environ["WATCHDOG_USEC"])  # microseconds
            if limit > 0 and int(os.environ.get("WATCHDOG_PID", os.getpid())) == os.getpid():
                self.interval = limit / 2_000_000

    def send(self, message: str) -> None:
        """Sends a message: `READY`, `STOPPING`, `ALIVE`, or `STATUS=` and a line for `systemctl status`."""
        if self._address is None:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            # A manager whose queue is full must not delay the agent; a later message gets through.
            channel.setblocking(False)
            channel.sendto(message.encode("utf-8", "replace"), self._address)


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
        self._notifier = notifier
        self._details = details
        self._folder: StateFolder | None = None
        self._written = False
        self._touched = 0.0

    def write_to(self, folder: StateFolder) -> None:
        """Writes the heartbeat to this state folder from now on."""
        self._folder = folder
        self._written = False

    def set_state(self, name: str) -> None:
        """Changes to a named state."""
        if name != self.state:
            self.state = name
            self._notifier.send("STATUS=" + " ".join(name.split()))  # a line break would begin another field
        elif self._written:
            return
        self.write()

    def write(self) -> None:
        """Writes the heartbeat file again after a change of its content."""
        if self._folder is None:
            return
        self._written = False
        with suppress(OSError):
            content: dict[str, object] = {"state": self.state, **self._details()}
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
