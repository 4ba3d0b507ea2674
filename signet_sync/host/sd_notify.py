"""Sends messages to the service manager: `sd_notify(3)` in a few lines, silent without `$NOTIFY_SOCKET`."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress


class Notifier:
    """Reports the agent's state to systemd; without a socket every method does nothing, and none ever raises.

    `$NOTIFY_SOCKET` names a datagram socket: a path, or an abstract name after `@` (source: sd_notify(3)).
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        name = environ.get("NOTIFY_SOCKET", "")
        abstract = name.startswith("@") and len(name) > 1
        self._address = "\0" + name[1:] if abstract else name if name.startswith("/") else None
        self._interval = _interval(environ)

    def ready(self) -> None:
        """Reports that the agent is working; also ends `reloading`."""
        self._send("READY=1")

    def status(self, text: str) -> None:
        """Sends one line for `systemctl status`; a line break would begin another field, so it becomes a blank."""
        self._send("STATUS=" + " ".join(text.split()))

    def reloading(self) -> None:
        """Reports that settings are being read again; `ready` must follow."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Reports that the agent is ending, by itself or on request."""
        self._send("STOPPING=1")

    def watchdog(self) -> None:
        """Sends a sign of life; call it from the loop that does the work, so that a loop that hangs is restarted."""
        self._send("WATCHDOG=1")

    def watchdog_interval(self) -> float | None:
        """Returns seconds between two calls of `watchdog`, half of the limit; None if no watchdog is set."""
        return self._interval

    def _send(self, message: str) -> None:
        if self._address is None:
            return
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            # A manager whose queue is full must not delay the agent; a later message gets through.
            channel.setblocking(False)
            channel.sendto(message.encode("utf-8", "replace"), self._address)


def _interval(environ: Mapping[str, str]) -> float | None:
    """Returns half of `$WATCHDOG_USEC` in seconds, if set for this process (source: sd_watchdog_enabled(3))."""
    try:
        limit = int(environ["WATCHDOG_USEC"])
        meant_for = int(environ.get("WATCHDOG_PID", os.getpid()))
    except (KeyError, ValueError):
        return None
    return limit / 2_000_000 if limit > 0 and meant_for == os.getpid() else None  # the limit is in microseconds
