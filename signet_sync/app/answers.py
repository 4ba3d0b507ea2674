"""Answers hooks and operations for the agent, over a socket in the state folder: in threads, with the same functions.

Who waits in vain does the work itself, so nothing is recorded as given before a hook says that it got it. Only who
could do it is answered: the agent's lock, which they send along open to write, shows that they can write here.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import threading
import time
from contextlib import ExitStack, suppress
from typing import Any

from signet_sync import __version__
from signet_sync.app import ask
from signet_sync.capture import hook
from signet_sync.errors import SignetSyncError
from signet_sync.log import logger
from signet_sync.storage.locations import StateFolder

_BEAT = 0.5  # seconds between two looks whether to stop
_LINE = 1 << 20  # bytes of a request's first line
_AT_ONCE = 4  # operations; hooks have a thread of their own
_WAITING = 128  # hooks that may wait


class Answers(threading.Thread):
    """Listens until `stop`; one hook after the other."""

    def __init__(self, root: str, folder: StateFolder) -> None:
        super().__init__(name="answers", daemon=True)
        self.root = root
        self.folder = folder
        self._stopping = threading.Event()
        self._slots = threading.Semaphore(_AT_ONCE)
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
                caller, _ = self._socket.accept()
            except TimeoutError:
                continue
            except OSError:
                if self._stopping.is_set():
                    return
                time.sleep(_BEAT)
                continue
            try:
                with caller:
                    self._answer(caller)
            except Exception as error:  # noqa: BLE001 - the hook does it itself
                logger.debug("a hook was not answered: {}", type(error).__name__)

    def _answer(self, caller: socket.socket) -> None:
        """Answers one hook, and records what it got once it says so; starts a thread for an operation."""
        until = time.monotonic() + ask.DEADLINE
        head, payload, may_write = _request(caller, until, ask.proof_of(self.folder))
        environ = {name: str(value) for name, value in head["environ"].items() if name in ask.VARIABLES}
        # Another version, other settings than ours, or in a sandbox that may not write here.
        same = all(environ.get(name) == os.environ.get(name) for name in ask.SAME)
        if head["version"] != __version__ or not same or not may_write:
            return
        if "operation" in head:
            if environ.get("HOME") == os.environ.get("HOME") and self._slots.acquire(blocking=False):
                with ExitStack() as ours:
                    ours.callback(self._slots.release)
                    given = ours.enter_context(caller.dup()), head["operation"], head["given"]
                    threading.Thread(target=self._operate, args=given, name="operation", daemon=True).start()
                    ours.pop_all()  # the thread's
            return
        place = self.root, self.folder
        code, out, said, record = hook.answer(head["arguments"], payload, ask.inject, environ, place)
        document = {"code": code, "out": out, "err": said}
        caller.settimeout(ask.DEADLINE)
        caller.sendall(json.dumps(document).encode() + b"\n")
        if caller.recv(1) == b"+":
            record()

    def _operate(self, caller: socket.socket, name: str, given: dict[str, Any]) -> None:
        """Does one operation; its own errors are an answer, too, and after any other the caller does it."""
        try:
            with caller:
                caller.settimeout(ask.LONGEST_OPERATION)
                caller.sendall(ask.BEGUN)
                caller.sendall(json.dumps(self._done(name, **given)).encode() + b"\n")
        except Exception as error:  # noqa: BLE001 - as above
            logger.debug("{} was not done: {}", name, type(error).__name__)
        finally:
            self._slots.release()

    def _done(self, name: str, agent: str, command: str, anyway: bool, given: dict[str, Any]) -> dict[str, Any]:
        from signet_sync.app.operations import OPERATIONS  # once somebody asks
        from signet_sync.app.workspace import open_to_write
        from signet_sync.settings import model
        from signet_sync.sync.read_only import IndexPlace

        remarks: list[str] = []

        def settings() -> model.Settings:
            found, said = model.load(self.root, anyway=anyway)
            remarks.extend(map(str, said))
            return found

        place = IndexPlace(self.root, None, settings, lambda words: command + words, open_to_write)
        try:
            return {"answer": OPERATIONS[name](place, agent, **given), "remarks": remarks}
        except SignetSyncError as error:
            named = {name: getattr(error, name) for name in ask.FIELDS}
            return {"error": {"kind": type(error).__name__, **named}, "remarks": remarks}


def _request(caller: socket.socket, until: float, proof: str) -> tuple[dict[str, Any], bytes, bool]:
    """Reads first line and payload of a request, and whether it has the proof. Raises `OSError`, `ValueError`."""
    data = bytearray()
    wanted = -1
    head: dict[str, Any] = {}
    may_write = False
    while wanted < 0 or len(data) < wanted:
        caller.settimeout(max(until - time.monotonic(), 0.001))
        part, handles, _, _ = socket.recv_fds(caller, 1 << 20, 1)
        for handle in handles:
            may_write |= _is_open_to_write(handle, proof)
            os.close(handle)
        if not part:
            raise ValueError("a request ended early")
        data += part
        if wanted < 0 and b"\n" in data[:_LINE]:
            line, _, rest = bytes(data).partition(b"\n")
            head, data = json.loads(line), bytearray(rest)
            wanted = int(head["size"])
        if len(data) > ask.PAYLOAD_LIMIT + _LINE:
            raise ValueError("a request is too long")
    return head, bytes(data), may_write


def _is_open_to_write(handle: int, path: str) -> bool:
    mode = fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE
    return mode != os.O_RDONLY and os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
