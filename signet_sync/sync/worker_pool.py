"""Starts worker processes and gives them pieces of work; what a worker does is here, too.

Imported only by a pass that has much to do: its libraries load slowly.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from signet_sync.errors import place_of

if TYPE_CHECKING:  # not needed in a worker
    from signet_sync.sync.stages import Alive

# Seconds for one piece. The largest possible file, which is a piece of its own, takes three.
LONGEST = 60.0
# Seconds between two calls of `alive` while the pass waits.
_STEP = 0.2

Reply = list[tuple[str, Any]]  # for each value: where the function failed, and its answer


class WorkerPool:
    """Some processes. Raises `OSError` or `NotImplementedError` where there can be none."""

    def __init__(self, count: int) -> None:
        before = set(multiprocessing.active_children())
        # Processes are started in the current folder: without this they would run code that lies in it.
        safe = os.environ.get("PYTHONSAFEPATH")
        os.environ["PYTHONSAFEPATH"] = "1"
        try:
            self._pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin)
            for _ in range(count):
                self.submit(b"", [])  # each starts one, as none is idle yet
        finally:
            os.environ.pop("PYTHONSAFEPATH")
            if safe is not None:
                os.environ["PYTHONSAFEPATH"] = safe
        self._processes = set(multiprocessing.active_children()) - before
        # While we could write ourselves, the rest of an answer whose process was killed would be waited for.
        self._pool._result_queue._writer.close()  # type: ignore[attr-defined]

    def submit(self, function: bytes, values: list[bytes]) -> Future[Reply] | None:
        """Queues pickled values for a pickled function; returns None if a process has died."""
        try:
            return self._pool.submit(_answers, function, values)
        except (BrokenProcessPool, OSError):
            return None

    def wait(self, future: Future[Reply] | None, alive: Alive) -> Reply | None:
        """Waits for the answers to a piece; returns None if a process died, or was killed as it took too long."""
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
        """Kills the processes, whatever they are at."""
        for process in self._processes:
            process.kill()
        self._pool.shutdown(cancel_futures=True)


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
