"""Runs pure work in worker processes, so that a large pass uses every core.

A worker gets a function of ours and values, and returns answers. No connection, lock or open file of the pass is passed
to it. It ends with the pass, even if that was killed. What workers leave unanswered, for whatever reason, the caller
does itself.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from signet_sync.errors import place_of

if TYPE_CHECKING:  # not needed in a worker
    from signet_sync.sync.stages import Alive

Key = TypeVar("Key")
Value = TypeVar("Value")
Answer = TypeVar("Answer")

# More would wait for the one process that writes.
MOST = 4
# After so many deaths nothing is given to workers any more.
_DEATHS = 8
# Seconds for one piece. The largest possible file, which is a piece of its own, takes three.
LONGEST = 60.0
# Limits of one piece, and of what is queued in all; a larger value is sent alone.
_VALUES = 32
PIECE = 1 << 20
WAITING = 32 << 20
# Seconds between two calls of `alive` while the pass waits.
_STEP = 0.2
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
        self._pool: _Pool | None = None
        self._single: _Pool | None = None  # for the values of a piece over which a worker died
        self._deaths = 0
        # Where functions failed, without the value, which may contain private text.
        self.failures: set[str] = set()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._count = 0
        for pool in (self._pool, self._single):
            if pool is not None:
                pool.end()

    def __bool__(self) -> bool:
        return self._count > 0

    def start(self) -> None:
        """Starts the processes."""
        if self and self._pool is None:
            self._pool = self._started(self._count)

    def give(
        self, function: Callable[[Value], Answer | None], values: Iterable[tuple[Key, Value]]
    ) -> Given[Key, Answer]:
        """Queues values for a function that workers import; each value has a key for its answer.

        Values beyond the limit of queued bytes are not sent.
        """
        given: Given[Key, Answer] = Given(self, pickle.dumps(function, pickle.HIGHEST_PROTOCOL) if self else b"")
        for keys, packed in _pieces(values) if self else ():
            self.start()
            if self._pool is None:
                break
            given.pieces.append((keys, packed, self._pool, self._pool.submit(given.function, packed)))
        return given

    def reply(self, pool: _Pool, future: Future[Reply] | None, alive: Alive) -> Reply | None:
        """Waits for the answers to a piece; None if a worker died, or was killed because it took too long."""
        found = pool.wait(future, alive)
        if found is None and pool is self._pool:
            self._bury(pool)
            self._pool = None
        return found

    def alone(self, function: bytes, value: bytes, alive: Alive) -> tuple[str, Any] | None:
        """Returns the answer of a process that has nothing else to do; None if it died over this value, too."""
        if self._single is None:
            self._single = self._started(1)
            if self._single is None or self._single.wait(self._single.submit(b"", []), alive) is None:
                self._count = 0  # one that does not even start did not die over a value
                return "", None
        found = self._single.wait(self._single.submit(function, [value]), alive)
        if found is None:
            self._bury(self._single)
            self._single = None
        return found[0] if found else None

    def _started(self, count: int) -> _Pool | None:
        try:
            return _Pool(count)
        except (OSError, ImportError, NotImplementedError, BrokenProcessPool):
            self._count = 0
            return None

    def _bury(self, pool: _Pool) -> None:
        pool.end()
        self._deaths += 1
        if self._deaths >= _DEATHS:
            self._count = 0


class Given(Generic[Key, Answer]):
    """Collects the answers to values that workers were given."""

    def __init__(self, workers: Workers, function: bytes) -> None:
        self._workers = workers
        self.function = function
        self.pieces: deque[tuple[list[Key], list[bytes], _Pool, Future[Reply] | None]] = deque()
        # Keys of values over which workers died twice.
        self.deadly: set[Key] = set()

    def answers(self, alive: Alive) -> Iterator[tuple[Key, Answer]]:
        """Yields keys and answers in the order of the values, without those left to the caller."""
        while self.pieces:
            keys, values, pool, future = self.pieces.popleft()
            reply = self._workers.reply(pool, future, alive)
            for place, key in enumerate(keys):
                if reply is None and not self._workers:
                    break
                given = reply[place] if reply else self._workers.alone(self.function, values[place], alive)
                if given is None:
                    self.deadly.add(key)
                    continue
                failure, answer = given
                if failure:
                    self._workers.failures.add(failure)
                elif answer is not None:
                    yield key, answer


class _Pool:
    """Some processes. Raises `OSError` and the like if none can be started."""

    def __init__(self, count: int) -> None:
        before = set(multiprocessing.active_children())
        # Processes are started in the current folder: without this they would run code that lies in it.
        safe = os.environ.get("PYTHONSAFEPATH")
        os.environ["PYTHONSAFEPATH"] = "1"
        try:
            self._pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin)
            for _ in range(count):
                self._pool.submit(int)  # each starts one, as none is idle yet
        finally:
            os.environ.pop("PYTHONSAFEPATH")
            if safe is not None:
                os.environ["PYTHONSAFEPATH"] = safe
        self._processes = set(multiprocessing.active_children()) - before
        # While we could write ourselves, the rest of an answer whose process was killed would be waited for.
        self._pool._result_queue._writer.close()  # type: ignore[attr-defined]

    def submit(self, function: bytes, values: list[bytes]) -> Future[Reply] | None:
        try:
            return self._pool.submit(_answers, function, values)
        except (BrokenProcessPool, OSError):
            return None

    def wait(self, future: Future[Reply] | None, alive: Alive) -> Reply | None:
        end = time.monotonic() + LONGEST
        while future is not None:
            try:
                return future.result(_STEP)
            except TimeoutError:
                alive()
                if time.monotonic() > end:
                    self.end()
            except (BrokenProcessPool, CancelledError):
                break
        return None

    def end(self) -> None:
        for process in self._processes:
            process.kill()
        self._pool.shutdown(cancel_futures=True)


def _pieces(values: Iterable[tuple[Key, Value]]) -> Iterator[tuple[list[Key], list[bytes]]]:
    """Packs values into pieces, up to the limit of queued bytes."""
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


# ── in the worker ──


def _begin() -> None:
    """Makes this worker silent, leaves Ctrl-C to the pass, and ends with it."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.chdir("/")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # it makes no cycles, and does not live long
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _answers(function: bytes, values: list[bytes]) -> Reply:
    return [_answer(function, value) for value in values]


def _answer(function: bytes, value: bytes) -> tuple[str, Any]:
    """Returns where the function failed, and its answer; the caller repeats a failed call and raises its error."""
    try:
        return "", _loaded(function)(pickle.loads(value))  # noqa: S301 - written by the pass
    except MemoryError:
        os._exit(1)
    except Exception as error:  # noqa: BLE001 - the pass reports it
        return place_of(error), None


@lru_cache(1)
def _loaded(function: bytes) -> Callable[[Any], Any]:
    loaded: Callable[[Any], Any] = pickle.loads(function)  # noqa: S301 - written by the pass
    return loaded
