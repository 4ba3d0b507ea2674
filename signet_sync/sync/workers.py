"""Runs pure work in worker processes.

A worker gets a function of ours and values, and returns answers. No connection, lock or open file of the pass is passed
to it. It ends with the pass, even if that was killed. What workers leave unanswered, for whatever reason, the caller
does itself. The libraries for processes load slowly, so only a pass that has much to do imports them.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from signet_sync.errors import place_of

if TYPE_CHECKING:
    from concurrent.futures import Future

Key = TypeVar("Key")
Value = TypeVar("Value")
Answer = TypeVar("Answer")
Alive = Callable[[], None]  # called in long steps; an exception that it raises ends the work
Reply = list[tuple[str, Any]]  # for each value: where the function failed, and its answer

_MOST = 4  # more would wait for the one process that writes
_VALUES = 16  # of one piece
_STEP = 0.2  # seconds between two calls of `alive` while the pass waits


def useful() -> int:
    """Returns the number of useful workers: one per core, as the pass mostly waits for them; none on one core."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cores = os.cpu_count() or 1
    return min(cores, _MOST) if cores > 1 else 0


class Workers:
    """Holds worker processes: started by the first work, ended with the `with` block or when one of them dies."""

    def __init__(self, count: int | None = None) -> None:
        self._count = useful() if count is None else count
        self._pool: _Pool | None = None
        # Where functions failed, without the value, which may contain private text.
        self.failures: set[str] = set()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def __bool__(self) -> bool:
        return self._count > 0

    def start(self) -> None:
        """Starts the processes; where there can be none, everything is left to the caller."""
        try:
            if self and self._pool is None:
                self._pool = _Pool(self._count)
        # ValueError: the handle of Python's tracker of resources is another's by now, as after a process that cannot be
        # started. NotImplementedError: a system without semaphores, as Python says it.
        except (OSError, ImportError, ValueError, NotImplementedError) as error:
            self._end(f"none can be started: {type(error).__name__}")

    def give(
        self, function: Callable[[Value], Answer | None], values: Iterable[tuple[Key, Value]]
    ) -> Given[Key, Value, Answer]:
        """Queues values for a function that workers import; each value has a key for its answer."""
        given: Given[Key, Value, Answer] = Given(self)
        rest = iter(values)
        self.start()
        while self._pool is not None and (piece := list(islice(rest, _VALUES))):
            future = self._pool.submit(function, [value for _, value in piece])
            given.pieces.append(([key for key, _ in piece], future))
        return given

    def reply(self, future: Future[Reply] | None, alive: Alive) -> Reply:
        """Waits for the answers to a piece; none if a worker died, and then all that is left is left to the caller."""
        from concurrent.futures import CancelledError
        from concurrent.futures.process import BrokenProcessPool

        while future is not None:
            try:
                return future.result(_STEP)
            except TimeoutError:
                alive()
            except (BrokenProcessPool, CancelledError):
                break
            except Exception as error:  # noqa: BLE001 - the caller does it, and raises its error
                self.failures.add(place_of(error))
                return []
        self._end("it died")
        return []

    def _end(self, failure: str = "") -> None:
        if failure and self:
            self.failures.add(failure)
        self._count = 0
        if self._pool is not None:
            self._pool.end()
            self._pool = None


class Given(Generic[Key, Value, Answer]):
    """Collects the answers to values that workers were given."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self.pieces: deque[tuple[list[Key], Future[Reply] | None]] = deque()

    def answers(self, alive: Alive) -> Iterator[tuple[Key, Answer]]:
        """Yields keys and answers in the order of the values, without those left to the caller."""
        while self.pieces:
            keys, future = self.pieces.popleft()
            for key, (failure, answer) in zip(keys, self._workers.reply(future, alive), strict=False):
                if failure:
                    self._workers.failures.add(failure)
                elif answer is not None:
                    yield key, answer


class _Pool:
    """Some processes. Raises what `Workers.start` takes for "there can be none"."""

    def __init__(self, count: int) -> None:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        before = set(multiprocessing.active_children())
        # Processes are started in the current folder: without this they would run code that lies in it.
        safe = os.environ.get("PYTHONSAFEPATH")
        os.environ["PYTHONSAFEPATH"] = "1"
        try:
            self._pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin)
            for _ in range(count):
                self.submit(len, [])  # each starts one, as none is idle yet
        finally:
            os.environ.pop("PYTHONSAFEPATH")
            if safe is not None:
                os.environ["PYTHONSAFEPATH"] = safe
        self._processes = set(multiprocessing.active_children()) - before
        # While we could write ourselves, the rest of an answer whose process was killed would be waited for.
        self._pool._result_queue._writer.close()  # type: ignore[attr-defined]

    def submit(self, function: Callable[[Any], Any], values: list[Any]) -> Future[Reply] | None:
        """Queues values for a function; returns None if a process has died."""
        try:
            # Pickled here: what a process cannot import would end it.
            import pickle

            return self._pool.submit(_answers, pickle.dumps((function, values), pickle.HIGHEST_PROTOCOL))
        except (RuntimeError, OSError):
            return None

    def end(self) -> None:
        """Kills the processes, whatever they are at."""
        for process in self._processes:
            process.kill()
        self._pool.shutdown(cancel_futures=True)


# ── in the worker ──


def _begin() -> None:
    """Makes this worker silent, leaves Ctrl-C to the pass, and ends with it."""
    import gc
    import multiprocessing
    import signal
    import threading

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.chdir("/")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.disable()  # it makes no cycles, and does not live long
    threading.Thread(target=end_with_parent, daemon=True).start()


def _answers(packed: bytes) -> Reply:
    """Returns for each value where the function failed, and its answer; the caller repeats a failed call."""
    import pickle

    function, values = pickle.loads(packed)  # noqa: S301 - written by the pass
    found: Reply = []
    for value in values:
        try:
            found.append(("", function(value)))
        except Exception as error:  # noqa: BLE001 - the pass reports it
            found.append((place_of(error), None))
    return found
