"""Asks the agent, where it runs, for a hook's answer or an operation: it has everything loaded.

Imports next to nothing, for harnesses wait for it. Without an answer in time the caller does the same work itself.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from contextlib import contextmanager, suppress

from signet_sync import __version__
from signet_sync.storage import locations

TYPE_CHECKING = False  # same as in `typing`, without importing it
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from signet_sync.capture.injections import HookSession, Injection, Moment
    from signet_sync.storage.locations import StateFolder
    from signet_sync.sync.read_only import IndexPlace

# A payload of a hook: bytes that are read, and seconds for all of it; some harnesses give their hooks only three.
PAYLOAD_LIMIT, PATIENCE = 16 * 1024 * 1024, 2.0
MOMENT = 0.04  # seconds that a tool may wait for what memory holds on it
DEADLINE = 0.15  # seconds until a hook's answer, or until the agent says that it does an operation
LONGEST_OPERATION = 30.0  # seconds; what takes longer, or is cut off, is done again: nothing is there twice then
# What the agent has to know of the environment of a hook; with a variable of ours that is not
# among `PLACES` the hook does without it. Those in `SAME` decide what an answer says.
_COPILOT = ("COPILOT_AGENT_SESSION_ID", "COPILOT_HOME", "COPILOT_LOADER_PID")
VARIABLES = ("HOME", "CI", "CLAUDE_CODE_ENTRYPOINT", *_COPILOT, "SIGNET_CONFIG", "TZ")
SAME = ("SIGNET_CONFIG", "TZ")
FIELDS = ("message", "path", "hint", "code", "details", "suggestions")  # of an error
BEGUN = b" "  # an operation is being done
PLACES = frozenset(("SIGNET_WORKSPACE", "SIGNET_STATE", "SIGNET_CONFIG"))  # they say where, not how
_LONGEST = 1 << 26  # bytes of an answer
_LONGEST_ADDRESS = 100  # bytes; macOS takes 103


def run_hook(arguments: list[str]) -> int:
    """Runs `[--workspace PATH] hook HARNESS [--strict]`; returns the exit code."""
    payload = read_stdin()
    if is_moment(payload):  # only the agent is asked
        with limit_time(MOMENT):
            return ask(arguments, payload) or 0
    if (code := ask(arguments, payload)) is not None:
        return code
    from signet_sync.capture import hook  # most hooks are answered by the agent

    code, out, said, _ = hook.answer(arguments, payload, inject)
    _write(1, out)
    _write(2, said)
    return code


def inject(session: HookSession, words: str | Moment | None, source: str | None, budget: int) -> Injection:
    """Returns what a session gets at its start, at a prompt, or at the moment of a tool's call."""
    from signet_sync.pages import hook_context  # most hooks print nothing

    if isinstance(words, tuple):
        return hook_context.answer_moment(session, words)
    if words is None:
        return hook_context.answer_start(session, source, budget)
    return hook_context.answer_prompt(session, words, budget)


def proof_of(folder: StateFolder) -> str:
    """Returns the file that only those can open to write who could do what the agent does: the lock of its run."""
    return os.path.join(folder.locks, "run.lock")


def socket_of(folder: StateFolder) -> str:
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


def is_moment(payload: bytes | bytearray) -> bool:
    """Returns whether a hook is of a tool that is about to run, ran, or failed. No text in JSON has a bare quote."""
    named = payload.partition(b'"hook_event_name"')[2][:60].lstrip(b" \t\n:")
    return named.startswith((b'"PreToolUse"', b'"PostToolUse', b'"AfterTool"'))


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Ends this process without a word if what is done takes longer, whatever it waits for: a disk may hang, too."""
    import _thread

    done = _thread.allocate_lock()
    done.acquire()
    with suppress(RuntimeError):  # a system may allow no more threads
        _thread.start_new_thread(lambda: done.acquire(timeout=seconds) or os._exit(0), ())
    try:
        yield
    finally:
        done.release()


def ask(arguments: list[str], payload: bytes | bytearray) -> int | None:
    """Prints what the agent answers to a hook; returns the exit code, or None: the hook has to do it itself."""
    try:
        root = locations.locate_workspace(_workspace(arguments))
        found = _read_answer(root, {"arguments": arguments}, payload)
        code, out, said = (int(found["code"]), str(found["out"]), str(found["err"])) if found else (0, "", "")
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if found is None:
        return None
    _write(1, out)
    _write(2, said)
    return code


def operation(
    name: str,
    place: Callable[[], IndexPlace],
    agent_id: str,
    given: dict[str, Any],
    *,
    root: str,
    chosen: str | None,
    command: str,
    anyway: bool = False,
    say: Callable[[str], object] = lambda text: None,
) -> dict[str, Any]:
    """Returns the document of an operation (`app.operations`): the agent's, else it is done here, in a place.

    The agent knows nothing of a `chosen` database. `command` begins a command line for this workspace; `anyway` accepts
    bad settings, whose remarks are said. Raises what the operation raises.
    """
    asked = {"agent": agent_id, "command": command, "anyway": anyway, "given": given}
    try:
        found = None if chosen else _read_answer(root, {"operation": name, "given": asked}, b"")
    except (OSError, ValueError):
        found = None
    if found is None:
        from signet_sync.app.operations import OPERATIONS  # what the agent has loaded

        return OPERATIONS[name](place(), agent_id, **given)
    for remark in found["remarks"]:
        say(remark)
    if "error" in found:
        raise _error_of(found["error"])
    document: dict[str, Any] = found["answer"]
    return document


def _error_of(said: dict[str, Any]) -> Exception:
    from signet_sync import errors

    kind = getattr(errors, said.pop("kind"), errors.SignetSyncError)
    error: errors.SignetSyncError = kind.__new__(kind)
    suggestions = tuple(said.pop("suggestions"))
    errors.SignetSyncError.__init__(error, said.pop("message"), **said)
    error.suggestions = suggestions
    return error


def _read_answer(root: str, asked: Mapping[str, Any], payload: bytes | bytearray) -> dict[str, Any] | None:
    """Returns the agent's answer, None if it gives none. Raises `OSError`, `ValueError`."""
    if any(name.startswith("SIGNET_") and name not in PLACES for name in os.environ):
        return None
    until = time.monotonic() + DEADLINE
    folder = locations.locate(root)
    place = socket_of(folder)
    if os.lstat(place).st_uid != os.geteuid():
        return None
    import _socket  # `socket` is slow to import, and most of it is not for us

    agent = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    # The agent can write where a sandbox may not let us: what shows that we could is sent along.
    proof = os.open(proof_of(folder), os.O_WRONLY | os.O_CLOEXEC)
    try:
        _patience(agent, until)
        with address(place) as at:
            agent.connect(at)
        named = {name: os.environ[name] for name in VARIABLES if name in os.environ}
        head = json.dumps({"version": __version__, "environ": named, "size": len(payload), **asked}).encode() + b"\n"
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, proof.to_bytes(4, sys.byteorder))]
        sent = agent.sendmsg([head], rights)
        if rest := head[sent:] + payload:  # nothing left may be sent to an agent that has answered and gone already
            agent.sendall(rest)
        answer = bytearray()
        while not answer.endswith(b"\n") and len(answer) < _LONGEST:
            _patience(agent, until)
            part = agent.recv(1 << 16)
            if not part:
                return None
            until += LONGEST_OPERATION if not answer and part.startswith(BEGUN) else 0
            answer += part
        found = json.loads(answer)
        if "operation" not in asked:
            agent.sendall(b"+")  # only now it records what the session got
    finally:
        os.close(proof)
        agent.close()
    return found if isinstance(found, dict) else None


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
    """Writes directly: a buffer that cannot be flushed at exit would change the exit code."""
    data = memoryview(text.encode("utf-8", "replace"))
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except OSError:
        return  # the reader is gone
