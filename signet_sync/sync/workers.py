"""Does pure work in processes beside a pass, so that a pass over much uses every core.

A worker is given a function of ours and values, and answers values: no connection, lock or open file of the pass
reaches it, nothing of a workspace is on its module path, and it ends when its input ends, also where the pass was
killed. What the workers leave unanswered, for whatever reason, the caller does itself.
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

if TYPE_CHECKING:  # what a worker has no use for
    from signet_sync.sync.stages import Alive

Key = TypeVar("Key")
Value = TypeVar("Value")
Answer = TypeVar("Answer")

# More would wait for the one process that writes.
MOST = 4
# So many deaths over one value, and it is not given to a worker again; so many in all, and nothing is.
DEATHS = 3
_DEATHS_IN_ALL = 12
# Seconds for one value. The largest file there may be takes three.
LONGEST = 60.0
# What one message holds at most, and what may wait in all; a value that is larger than that goes alone.
_VALUES = 32
_PIECE = 1 << 20
_WAITING = 32 << 20
# Seconds between two signs of life of a pass that waits.
_STEP = 0.2
_SIZE = 4  # bytes that tell the size of what follows
_READY = b"+"


def useful() -> int:
    """Gives how many workers are of use: as many as cores, for the pass mostly waits for them, and none on one core."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cores = os.cpu_count() or 1
    return min(cores, MOST) if cores > 1 else 0


class Workers:
    """Holds worker processes: started by the first that gives them something, ended with the `with` block."""

    def __init__(self, count: int | None = None) -> None:
        self._count = useful() if count is None else count
        self._pieces: SimpleQueue[_Piece | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._processes: set[_Process] = set()
        self._lock = threading.Lock()
        self._ended = False
        self._deaths = 0
        self._function: object = None
        # Where functions failed, without a value: that may be anybody's words.
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
        """Starts the processes, one for each thread that speaks to it."""
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
        """Has a function, which workers import, called with values; each has a key under which its answer is found.

        Values of more bytes than may wait are not asked for.
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
        """Waits for a piece; a worker that takes too long over a value is ended."""
        while not piece.done.wait(_STEP):
            alive()
            with self._lock:
                for process in self._processes:
                    process.kill_when_stuck()

    def _serve(self) -> None:
        """Passes pieces to one process, and to another one where that dies."""
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
        """Whether a process that is dead now had begun with what it was asked; where not, no other would either."""
        process.end()
        with self._lock:
            self._processes.discard(process)
            self._deaths += 1
            if not process.ready or self._deaths >= _DEATHS_IN_ALL:
                self._ended = True
        return process.ready


class Given(Generic[Key, Answer]):
    """Tells the answers to values that workers were given."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._pieces: deque[tuple[list[Key], _Piece]] = deque()
        # Keys of values of which workers died.
        self.deadly: set[Key] = set()

    def add(self, keys: list[Key], piece: _Piece) -> None:
        """Takes what was put into the queue."""
        self._pieces.append((keys, piece))

    def answers(self, alive: Alive) -> Iterator[tuple[Key, Answer]]:
        """Gives keys and answers in the order of the values, without those that are left to the caller."""
        while self._pieces:
            keys, piece = self._pieces.popleft()
            self._workers.wait(piece, alive)
            for some, reply in piece.replies(keys):
                if reply is None:
                    self.deadly.update(some)
                    continue
                answers = pickle.loads(reply)  # noqa: S301 - written by a worker
                for key, (failure, answer) in zip(some, answers, strict=True):
                    if failure:
                        self._workers.failures.add(failure)
                    elif answer is not None:
                        yield key, answer


class _Piece:
    """Values for one worker, and its replies to some at a time: None to one of which workers died."""

    def __init__(self, function: bytes, values: list[bytes]) -> None:
        self.function = function
        self.done = threading.Event()
        self._values = values
        self._replies: list[tuple[int, bytes | None]] = []
        self._deaths = 0

    @property
    def waiting(self) -> list[bytes]:
        """The values that are to be answered next: all, and one at a time when that was somebody's death."""
        return self._values[:1] if self._deaths else self._values

    def died(self) -> None:
        """Counts a death."""
        self._deaths += 1
        if self._deaths > DEATHS:  # the first was that of all of them
            self.came(None)

    def came(self, reply: bytes | None) -> None:
        """Takes the reply to what was waiting."""
        count = len(self.waiting)
        self._replies.append((count, reply))
        self._values = self._values[count:]
        self._deaths = min(self._deaths, 1)

    def replies(self, keys: Sequence[Key]) -> Iterator[tuple[Sequence[Key], bytes | None]]:
        """Gives the replies with the keys of what they answer."""
        start = 0
        for count, reply in self._replies:
            yield keys[start : start + count], reply
            start += count


class _Process:
    """Speaks to one worker process. Raises `OSError` where none can be started."""

    def __init__(self) -> None:
        import subprocess

        self._process = subprocess.Popen(
            # From no folder, and without one on the module path: what lies in a workspace is never run.
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

    def ask(self, function: bytes, values: Sequence[bytes]) -> bytes | None:
        """Has a function called with values; None where the process died."""
        assert self._process.stdin is not None and self._process.stdout is not None
        new, self._function = function != self._function, function
        self._since = time.monotonic()
        try:
            self._process.stdin.write(_sized(function if new else b"") + len(values).to_bytes(_SIZE, "big"))
            self._process.stdin.writelines(map(_sized, values))
            self._process.stdin.flush()
            if new and self._process.stdout.read(len(_READY)) != _READY:
                return None
            self.ready = True
            return _read(self._process.stdout)
        except OSError:
            return None
        finally:
            self._since = None

    def kill_when_stuck(self) -> None:
        since = self._since
        if since is not None and time.monotonic() - since > LONGEST:
            self.kill()

    def kill(self) -> None:
        self._process.kill()

    def end(self) -> None:
        """Leaves nothing of the process behind."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                if stream is not None:
                    stream.close()


def _pieces(values: Iterable[tuple[Key, Value]]) -> Iterator[tuple[list[Key], list[bytes]]]:
    """Packs values for one message after the other, until more waits than may."""
    keys: list[Key] = []
    packed: list[bytes] = []
    size = waiting = 0
    for key, value in values:
        keys.append(key)
        packed.append(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
        size += len(packed[-1])
        if len(keys) == _VALUES or size >= _PIECE:
            yield keys, packed
            waiting += size
            keys, packed, size = [], [], 0
            if waiting >= _WAITING:
                return
    if keys:
        yield keys, packed


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(_SIZE, "big") + data


def _read(stream: IO[bytes]) -> bytes | None:
    """Reads what `_sized` wrote; None at the end."""
    head = stream.read(_SIZE)
    size = int.from_bytes(head, "big")
    data = stream.read(size) if len(head) == _SIZE else b""
    return data if len(head) == _SIZE and len(data) == size else None


# ── in the worker ──


def _work(given: IO[bytes], back: IO[bytes]) -> None:
    """Calls what it is given with what it is given, until there is no more."""
    function: Callable[[Any], Any] = id
    while (called := _read(given)) is not None:
        values = [_read(given) or b"" for _ in range(int.from_bytes(given.read(_SIZE), "big"))]
        if called:
            function = pickle.loads(called)  # noqa: S301 - written by the pass
            back.write(_READY)
            back.flush()
        answers = [_answer(function, value) for value in values]
        back.write(_sized(pickle.dumps(answers, pickle.HIGHEST_PROTOCOL)))
        back.flush()


def _answer(function: Callable[[Any], Any], value: bytes) -> tuple[str, Any]:
    """Gives where the function failed, and its answer; what failed the caller does itself, and raises its error."""
    try:
        return "", function(pickle.loads(value))  # noqa: S301 - written by the pass
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - the pass reports it
        return place_of(error), None


def _main() -> None:
    # What is printed by accident must not get among the answers.
    given, back = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    with uncollected(), suppress(BrokenPipeError):
        _work(given, back)
    os._exit(0)  # what could not be written any more is not tried again


if __name__ == "__main__":
    _main()
