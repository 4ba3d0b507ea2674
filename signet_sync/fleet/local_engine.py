"""Runs a function for every workspace in a process pool of the standard library: for small fleets, on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from signet_sync.fleet.finished import DIED, TRIES, Finished, tried

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def run(
    function: Callable[[_Item], _Result], items: Iterable[_Item], workers: int
) -> Iterator[Finished[_Item, _Result]]:
    """Yields every item once, as `engines.run` does. What was in work when a worker died is tried by itself."""
    waiting = iter(items)
    while suspects := (yield from _pooled(function, waiting, workers)):
        for item in suspects:
            for _try in range(TRIES):
                if not (yield from _pooled(function, iter((item,)), 1)):
                    break
            else:
                yield Finished(item, None, DIED)


def _pooled(
    function: Callable[[_Item], _Result], waiting: Iterator[_Item], workers: int
) -> Generator[Finished[_Item, _Result], None, list[_Item]]:
    """Yields finished items until none is waiting, or a worker died; returns what was in work then.

    A pool does not tell over which item its worker died, and ends.
    """
    running: dict[Future[Any], _Item] = {}
    suspects: list[_Item] = []
    with _processes(workers) as pool:
        while True:
            # One more for each worker, so that none waits for this process.
            for item in islice(waiting, 0 if suspects else 2 * workers - len(running)):
                try:
                    running[pool.submit(tried, function, item)] = item
                except BrokenProcessPool:
                    suspects.append(item)
            if not running:
                return suspects
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                item, error = running.pop(future), future.exception()
                if isinstance(error, BrokenProcessPool):
                    suspects.append(item)
                elif error is not None:
                    yield Finished(item, None, type(error).__name__)
                else:
                    yield Finished(item, *future.result())


@contextmanager
def _processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Yields a pool; kills its processes if the block is left early."""
    before = set(multiprocessing.active_children())
    # Processes are started in the current folder: without this they would run code that lies in it.
    safe = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin)
    try:
        yield pool
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        os.environ.pop("PYTHONSAFEPATH")
        if safe is not None:
            os.environ["PYTHONSAFEPATH"] = safe


def _begin() -> None:
    """Makes this worker end with the process that started it, and leaves Ctrl-C to that one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
