"""Answers hooks for the agent, over a socket in the state folder: in a thread, with the functions that a hook runs.

A hook that waits in vain does the work itself, so nothing is recorded as given before it says that it got it.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from contextlib import suppress
from typing import Any

from loguru import logger

from signet_sync import __version__
from signet_sync.app import ask
from signet_sync.app.hook import answer
from signet_sync.storage.locations import StateFolder

_CONFIG = "SIGNET_CONFIG"
_BEAT = 0.5  # seconds between two looks whether to stop
_LINE = 1 << 16  # bytes of a request's first line
_WAITING = 128  # hooks that may wait


class Answers(threading.Thread):
    """Listens until `stop`; one hook after the other."""

    def __init__(self, root: str, folder: StateFolder) -> None:
        super().__init__(name="answers", daemon=True)
        self.root = root
        self.folder = folder
        self._stopping = threading.Event()
        self._place = ask.socket_of(folder)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def listen(self) -> bool:
        """Begins to listen; False where that is not possible, or where a hook would know other settings than we do."""
        try:
            if any(name.startswith("SIGNET_") and name not in ask.PLACES for name in os.environ):
                raise OSError("variables of the environment say how it works")
            with suppress(FileNotFoundError):
                os.unlink(self._place)  # of an agent that was killed: ours is the only one that runs
            with ask.address(self._place) as at:
                self._socket.bind(at)
            os.chmod(self._place, 0o600)
            self._socket.listen(_WAITING)
            self._socket.settimeout(_BEAT)
        except OSError as error:  # a path may be too long, a sandbox may refuse
            logger.info("hooks do without the agent: {}", error)
            self._socket.close()
            return False
        self.start()
        return True

    def stop(self) -> None:
        """Ends the thread; hooks that wait do without."""
        self._stopping.set()
        with suppress(OSError):
            os.unlink(self._place)
        self._socket.close()
        if self.is_alive():
            self.join(2 * _BEAT)

    def run(self) -> None:
        """Answers until stopped; no hook's trouble ends it."""
        while not self._stopping.is_set():
            try:
                hook, _ = self._socket.accept()
            except TimeoutError:
                continue
            except OSError:
                if self._stopping.is_set():
                    return
                time.sleep(_BEAT)
                continue
            with hook:
                try:
                    self._answer(hook)
                except Exception as error:  # noqa: BLE001 - the hook does it itself
                    logger.debug("a hook was not answered: {}", type(error).__name__)

    def _answer(self, hook: socket.socket) -> None:
        """Answers one hook, and records what it got once it says so."""
        if _uid_of(hook) != os.geteuid():
            return
        until = time.monotonic() + ask.DEADLINE
        head, payload = _request(hook, until)
        environ = {name: str(value) for name, value in head["environ"].items() if name in ask.VARIABLES}
        # Another version, or other settings than ours.
        if head["version"] != __version__ or environ.get(_CONFIG) != os.environ.get(_CONFIG):
            return
        code, out, said, record = answer(head["arguments"], payload, environ, self.root, self.folder)
        document = {"code": code, "out": out, "err": said}
        hook.settimeout(ask.DEADLINE)
        hook.sendall(json.dumps(document).encode() + b"\n")
        if hook.recv(1) == b"+":
            record()


def _request(hook: socket.socket, until: float) -> tuple[dict[str, Any], bytes]:
    """Reads first line and payload of a request. Raises `OSError`, `ValueError`."""
    data = bytearray()
    wanted = -1
    head: dict[str, Any] = {}
    while wanted < 0 or len(data) < wanted:
        hook.settimeout(max(until - time.monotonic(), 0.001))
        part = hook.recv(1 << 20)
        if not part:
            raise ValueError("a request ended early")
        data += part
        if wanted < 0 and b"\n" in data[:_LINE]:
            line, _, rest = bytes(data).partition(b"\n")
            head, data = json.loads(line), bytearray(rest)
            wanted = int(head["size"])
        if len(data) > ask.PAYLOAD_LIMIT + _LINE:
            raise ValueError("a request is too long")
    return head, bytes(data)


def _uid_of(hook: socket.socket) -> int:
    """Returns the user of the process at the other end; -1 where the system does not say."""
    credentials = getattr(socket, "SO_PEERCRED", None)
    if credentials is not None:
        return int(struct.unpack("3i", hook.getsockopt(socket.SOL_SOCKET, credentials, 12))[1])
    # LOCAL_PEERCRED of macOS gives a `struct xucred`: its version, then the user.
    with suppress(OSError, struct.error):
        return int(struct.unpack_from("2I", hook.getsockopt(0, 1, 76))[1])
    return -1
