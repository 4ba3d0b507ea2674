"""Runs pure work in worker processes, so that a large pass uses every core.

A worker gets a function of ours and values, and returns answers. No connection, lock or open file of the pass is passed
to it. It ends with the pass, even if that was killed. What workers leave unanswered, for whatever reason, the caller
does itself.
"""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

    from signet_sync.sync.stages import Alive
    from signet_sync.sync.worker_pool import Reply, WorkerPool

Key = TypeVar("Key")
Value = TypeVar("Value")
Answer = TypeVar("Answer")

# More would wait for the one process that writes.
MOST = 4
# After so many deaths nothing is given to workers any more.
_DEATHS = 8
# Limits of one piece, and of what is queued in all; a larger value is sent alone.
_VALUES = 32
PIECE = 1 << 20
WAITING = 32 << 20


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
        self._pool: WorkerPool | None = None
        self._single: WorkerPool | None = None  # for the values of a piece over which a worker died
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

    def reply(self, pool: WorkerPool, future: Future[Reply] | None, alive: Alive) -> Reply | None:
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

    def _started(self, count: int) -> WorkerPool | None:
        try:
            from signet_sync.sync.worker_pool import WorkerPool  # slow import, needed for much work only

            return WorkerPool(count)
        except (OSError, ImportError, NotImplementedError):
            self._count = 0
            return None

    def _bury(self, pool: WorkerPool) -> None:
        pool.end()
        self._deaths += 1
        if self._deaths >= _DEATHS:
            self._count = 0


class Given(Generic[Key, Answer]):
    """Collects the answers to values that workers were given."""

    def __init__(self, workers: Workers, function: bytes) -> None:
        self._workers = workers
        self.function = function
        self.pieces: deque[tuple[list[Key], list[bytes], WorkerPool, Future[Reply] | None]] = deque()
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
