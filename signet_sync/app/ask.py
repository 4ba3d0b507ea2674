"""Asks the agent for a hook's answer, where it runs: it has everything loaded, and a harness waits.

Imports next to nothing. Without an answer in time the hook does the same work itself.
"""

from __future__ import annotations

import json
import os
import select
import time
from contextlib import contextmanager, suppress

from signet_sync import __version__
from signet_sync.storage import locations

TYPE_CHECKING = False  # same as in `typing`, without importing it
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

# A payload of a hook: bytes that are read, and seconds for all of it; some harnesses give their hooks only three.
PAYLOAD_LIMIT, PATIENCE = 16 * 1024 * 1024, 2.0
DEADLINE = 0.15  # seconds until the agent's answer; after that the hook does without
# What the agent has to know of the environment of a hook; with a variable of ours that is not
# among `PLACES` the hook does without it.
VARIABLES = ("HOME", "CI", "CLAUDE_CODE_ENTRYPOINT", "SIGNET_CONFIG")
PLACES = frozenset(("SIGNET_WORKSPACE", "SIGNET_STATE", "SIGNET_CONFIG"))  # they say where, not how
_LONGEST = 1 << 20  # bytes of an answer
_LONGEST_ADDRESS = 100  # bytes; macOS takes 103


def socket_of(folder: locations.StateFolder) -> str:
    """Returns where the agent of a workspace listens."""
    return os.path.join(folder.path, "agent.sock")


@contextmanager
def address(place: str) -> Iterator[str]:
    """Gives the address of a socket: the system takes some hundred characters, and a folder's path may have more."""
    if len(os.fsencode(place)) < _LONGEST_ADDRESS or not os.path.isdir("/proc/self/fd"):
        yield place
        return
    folder = os.open(os.path.dirname(place), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(place)}"
    finally:
        os.close(folder)


def read_stdin() -> bytearray:
    """Reads all of stdin that comes in time; drops what exceeds the limit, so that the writer never fails."""
    until, data = time.monotonic() + PATIENCE, bytearray()
    with suppress(OSError):  # it may be closed
        while (left := until - time.monotonic()) > 0 and select.select([0], [], [], left)[0]:
            chunk = os.read(0, 1 << 20)
            if not chunk:
                break
            if len(data) <= PAYLOAD_LIMIT:
                data += chunk
    return data


def ask(arguments: list[str], payload: bytes | bytearray, environ: Mapping[str, str] = os.environ) -> int | None:
    """Prints what the agent answers to a hook; returns the exit code, or None: the hook has to do it itself."""
    if any(name.startswith("SIGNET_") and name not in PLACES for name in environ):
        return None
    until = time.monotonic() + DEADLINE
    try:
        place = socket_of(locations.locate(locations.locate_workspace(_workspace(arguments), environ), environ))
        if os.lstat(place).st_uid != os.geteuid():
            return None
        import _socket  # `socket` is slow to import, and most of it is not for us

        agent = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            _patience(agent, until)
            with address(place) as at:
                agent.connect(at)
            named = {name: environ[name] for name in VARIABLES if name in environ}
            head = {"version": __version__, "arguments": arguments, "environ": named, "size": len(payload)}
            agent.sendall(json.dumps(head).encode() + b"\n" + payload)
            answer = bytearray()
            while not answer.endswith(b"\n") and len(answer) < _LONGEST:
                _patience(agent, until)
                part = agent.recv(1 << 16)
                if not part:
                    return None
                answer += part
            found = json.loads(answer)
            code, out, said = int(found["code"]), str(found["out"]), str(found["err"])
            agent.sendall(b"+")  # only now it records what the session got
        finally:
            agent.close()
    except (OSError, ValueError, KeyError, TypeError):
        return None
    _write(1, out)
    _write(2, said)
    return code


def _workspace(arguments: list[str]) -> str | None:
    """Returns the value of `--workspace`."""
    words = iter(arguments)
    for word in words:
        if word == "--workspace":
            return next(words, None)
        if word.startswith("--workspace="):
            return word.partition("=")[2]
    return None


def _patience(agent: Any, until: float) -> None:
    agent.settimeout(max(until - time.monotonic(), 0.001))


def _write(descriptor: int, text: str) -> None:
    data = memoryview(text.encode("utf-8", "replace"))
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        return  # the reader is gone
