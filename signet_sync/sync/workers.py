"""Runs pure work in worker processes, so that a large pass uses every core.

A worker gets a function of ours and values, and returns answers. No connection, lock or open file of the pass is passed
to it, and no folder of a workspace is on its module path. It ends when its input ends, even if the pass was killed.
What workers leave unanswered, for whatever reason, the caller does itself.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

from signet_sync.errors import place_of
from signet_sync.sync.gc_control import uncollected

if TYPE_CHECKING:  # not needed in a worker
    from signet_sync.sync.stages import Alive

Key = TypeVar("Key")
Value = TypeVar("Value")
Answer = TypeVar("Answer")

# More would wait for the one process that writes.
MOST = 4
# After so many deaths over one value it is not given to a worker again; after so many in all, nothing is.
DEATHS = 3
_DEATHS_IN_ALL = 12
# Seconds for one value. The largest possible file takes three.
LONGEST = 60.0
# Limits of one message, and of what is queued in all; a larger value is sent alone.
_VALUES = 32
PIECE = 1 << 20
WAITING = 32 << 20
# Seconds between two calls of `alive` while the pass waits.
_STEP = 0.2
# What reading an answer raises if the worker died, perhaps while it was writing.
_DIED = (OSError, EOFError, pickle.UnpicklingError)
Reply = list[tuple[str, Any]]  # for each value: where the function failed, and its answer


def useful() -> int:
    """Returns the number of useful workers: one per core, as the pass mostly waits for them; none on one core."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cores = os.cpu_count() or 1
    return min(cores, MOST) if cores > 1 else 0


class Workers:
    """Holds worker processes: started by the first work, ended with the `with` block."""

    def __init__(self, count: int | None = None) -> None:
        self._count = useful() if count is None else count
        self._pieces: SimpleQueue[_Piece | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._processes: set[_Process] = set()
        self._lock = threading.Lock()
        self._ended = False
        self._deaths = 0
        self._function: object = None
        # Where functions failed, without the value, which may contain private text.
        self.failures: set[str] = set()
        self._packed = b""

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._ended = True
            for process in self._processes:
                process.kill()
        for _thread in self._threads:
            self._pieces.put(None)
        for thread in self._threads:
            thread.join()

    def __bool__(self) -> bool:
        return bool(self._count) and not self._ended

    def start(self) -> None:
        """Starts the processes, with one thread for each."""
        if self and not self._threads:
            self._threads = [
                threading.Thread(target=self._serve, name=f"worker-{number}", daemon=True)
                for number in range(self._count)
            ]
            for thread in self._threads:
                thread.start()

    def give(
        self, function: Callable[[Value], Answer | None], values: Iterable[tuple[Key, Value]]
    ) -> Given[Key, Answer]:
        """Queues values for a function that workers import; each value has a key for its answer.

        Values beyond the limit of queued bytes are not sent.
        """
        given: Given[Key, Answer] = Given(self)
        if self:
            self.start()
            if function is not self._function:
                self._function, self._packed = function, pickle.dumps(function, pickle.HIGHEST_PROTOCOL)
            for keys, packed in _pieces(values):
                piece = _Piece(self._packed, packed)
                given.add(keys, piece)
                self._pieces.put(piece)
        return given

    def wait(self, piece: _Piece, alive: Alive) -> None:
        """Waits for a piece; kills a worker that takes too long over a value."""
        while not piece.done.wait(_STEP):
            alive()
            with self._lock:
                for process in self._processes:
                    process.kill_when_stuck()

    def _serve(self) -> None:
        """Sends pieces to one process, and starts another one if it dies."""
        process = self._started()
        while (piece := self._pieces.get()) is not None:
            try:
                while piece.waiting and (process := process or self._started()):
                    reply = process.ask(piece.function, piece.waiting)
                    if reply is not None:
                        piece.came(reply)
                        continue
                    if self._buried(process):
                        piece.died()
                    process = None
            except MemoryError:
                self._ended = True
            finally:
                piece.done.set()
        if process is not None:
            self._buried(process)

    def _started(self) -> _Process | None:
        with self._lock:
            if self._ended:
                return None
            try:
                process = _Process()
            except OSError:
                self._ended = True
                return None
            self._processes.add(process)
            return process

    def _buried(self, process: _Process) -> bool:
        """Returns whether a dead process had loaded its function; if not, no other process would either."""
        process.end()
        with self._lock:
            self._processes.discard(process)
            self._deaths += 1
            if not process.ready or self._deaths >= _DEATHS_IN_ALL:
                self._ended = True
        return process.ready


class Given(Generic[Key, Answer]):
    """Collects the answers to values that workers were given."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._pieces: deque[tuple[list[Key], _Piece]] = deque()
        # Keys of values that killed workers.
        self.deadly: set[Key] = set()

    def add(self, keys: list[Key], piece: _Piece) -> None:
        """Adds a queued piece."""
        self._pieces.append((keys, piece))

    def answers(self, alive: Alive) -> Iterator[tuple[Key, Answer]]:
        """Yields keys and answers in the order of the values, without those left to the caller."""
        while self._pieces:
            keys, piece = self._pieces.popleft()
            self._workers.wait(piece, alive)
            for some, reply in piece.replies(keys):
                if reply is None:
                    self.deadly.update(some)
                    continue
                for key, (failure, answer) in zip(some, reply, strict=True):
                    if failure:
                        self._workers.failures.add(failure)
                    elif answer is not None:
                        yield key, answer


class _Piece:
    """Values for one worker, and the replies to them; None is the reply to a value that killed workers."""

    def __init__(self, function: bytes, values: list[bytes]) -> None:
        self.function = function
        self.done = threading.Event()
        self._values = values
        self._replies: list[tuple[int, Reply | None]] = []
        self._deaths = 0

    @property
    def waiting(self) -> list[bytes]:
        """Returns the values to send next: all, or one at a time once they killed a worker."""
        return self._values[:1] if self._deaths else self._values

    def died(self) -> None:
        """Counts a death."""
        self._deaths += 1
        if self._deaths > DEATHS:  # the first death was over all values together
            self.came(None)

    def came(self, reply: Reply | None) -> None:
        """Adds the reply to the values last sent."""
        count = len(self.waiting)
        self._replies.append((count, reply))
        self._values = self._values[count:]
        self._deaths = min(self._deaths, 1)

    def replies(self, keys: Sequence[Key]) -> Iterator[tuple[Sequence[Key], Reply | None]]:
        """Yields the replies with the keys of their values."""
        start = 0
        for count, reply in self._replies:
            yield keys[start : start + count], reply
            start += count


class _Process:
    """Communicates with one worker process. Raises `OSError` if none can be started."""

    def __init__(self) -> None:
        import subprocess

        self._process = subprocess.Popen(
            # From no folder, and without one on the module path: code that lies in a workspace is never run.
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        self._function = b""
        self._since: float | None = None
        # Whether it has ever loaded a function.
        self.ready = False

    def ask(self, function: bytes, values: Sequence[bytes]) -> Reply | None:
        """Sends a function and values; returns None if the process died."""
        assert self._process.stdin is not None and self._process.stdout is not None
        new, self._function = function != self._function, function
        self._since = time.monotonic()
        try:
            _send(self._process.stdin, (function if new else b"", values))
            if new:
                self.ready = pickle.load(self._process.stdout)  # noqa: S301 - written by a worker
            reply: Reply = pickle.load(self._process.stdout)  # noqa: S301 - written by a worker
        except _DIED:
            return None
        else:
            return reply
        finally:
            self._since = None

    def kill_when_stuck(self) -> None:
        since = self._since
        if since is not None and time.monotonic() - since > LONGEST:
            self.kill()

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        """Kills the process and closes its streams."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()


def _pieces(values: Iterable[tuple[Key, Value]]) -> Iterator[tuple[list[Key], list[bytes]]]:
    """Packs values into messages, up to the limit of queued bytes."""
    keys: list[Key] = []
    packed: list[bytes] = []
    size = waiting = 0
    for key, value in values:
        keys.append(key)
        packed.append(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
        size += len(packed[-1])
        if len(keys) == _VALUES or size >= PIECE:
            yield keys, packed
            waiting += size
            keys, packed, size = [], [], 0
            if waiting >= WAITING:
                return
    if keys:
        yield keys, packed


def _send(stream: IO[bytes], message: object) -> None:
    pickle.dump(message, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


# ── in the worker ──


def _work(given: IO[bytes], back: IO[bytes]) -> None:
    """Calls each function with its values. Raises `EOFError` at the end of the input."""
    function: Callable[[Any], Any] = id
    while True:
        called, values = pickle.load(given)  # noqa: S301 - written by the pass
        if called:
            function = pickle.loads(called)  # noqa: S301 - written by the pass
            _send(back, True)
        _send(back, [_answer(function, value) for value in values])


def _answer(function: Callable[[Any], Any], value: bytes) -> tuple[str, Any]:
    """Returns where the function failed, and its answer; the caller repeats a failed call and raises its error."""
    try:
        return "", function(pickle.loads(value))  # noqa: S301 - written by the pass
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - the pass reports it
        return place_of(error), None


def _main() -> None:
    # Output printed by accident must not mix with the answers.
    given, back = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    with uncollected(), suppress(BrokenPipeError, EOFError, pickle.UnpicklingError):
        _work(given, back)
    os._exit(0)  # what could not be written is not tried again


if __name__ == "__main__":
    _main()
