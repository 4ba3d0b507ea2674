"""Checks many workspaces, or writes their shares: one plain function of one, run for each here or on Ray.

Every item ends exactly once.
"""

import multiprocessing
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import chdir
from itertools import islice
from typing import Any

from signet_sync.errors import SignetSyncError, UsageError, extra_hint, place_of
from signet_sync.fleet.places import answer, matches, open_place, state_of
from signet_sync.fleet.share import share_target
from signet_sync.fleet.tables import Tables
from signet_sync.integrity import check as integrity_check
from signet_sync.integrity.check import CheckResult
from signet_sync.sync.index_records import PROBLEMS

TRIES = 2  # of an item by itself, whose worker dies
DIED = "its worker died, each time it was tried"
# An item with its result, or with why there is none: the error that our own code raised, or a text without a value.
Finished = tuple[Any, Any, "Exception | str | None"]
_Work = Generator[Finished, None, list[Any]]
# Nothing is sent to Ray's authors, and it must not copy the current folder to its nodes.
_RAY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_task_oom_retries": str(TRIES - 1)}
# Closed to others of this machine.
_RAY_HERE = _RAY | {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token"}
_RAY_HERE["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


def try_call(function: Callable[[Any], Any], item: Any) -> tuple[Any, Exception | str | None]:
    """Calls a function, in a worker; of an error that is not our own it gives the place, not the text."""
    try:
        return function(item), None
    except (SignetSyncError, OSError) as error:
        error.__cause__ = error.__context__ = None
        return None, error
    except Exception as error:  # noqa: BLE001 - an engine would write it into its logs
        return None, place_of(error)


def run(
    function: Callable[[Any], Any], items: Iterable[Any], *, address: str | None = None, workers: int | None = None
) -> Iterator[Finished]:
    """Yields every item once, as it is finished: on Ray if there is an `address` (`local`: its own on this machine).

    The function is one that workers can import. Ending the iteration ends all work. Raises `UsageError` without Ray,
    `SignetSyncError` if it cannot be reached.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1  # macOS has none
    with chdir("/"):  # in the current folder, perhaps a workspace, workers would find code that lies in it
        if address is not None:
            yield from _run_on_ray(function, iter(items), address, workers or cores)
            return
        waiting = iter(items)
        # A pool does not tell over which item its worker died, and ends: what was in work, or not begun, is tried by
        # itself.
        while suspects := (yield from _run_in_pool(function, waiting, workers or cores)):
            for item in suspects:
                for _ in range(TRIES):
                    if not (yield from _run_in_pool(function, iter((item,)), 1)):
                        break
                else:
                    yield item, None, DIED


def _run_in_pool(function: Callable[[Any], Any], waiting: Iterator[Any], workers: int) -> _Work:
    """Yields finished items until none is waiting, or a worker died; returns what was in work then."""
    running: dict[Future[Any], Any] = {}
    suspects: list[Any] = []
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _begin)
    before = set(multiprocessing.active_children())
    try:
        while True:
            # One more for each worker, so that none waits for this process.
            for item in islice(waiting, 0 if suspects else 2 * workers - len(running)):
                try:
                    running[pool.submit(try_call, function, item)] = item
                except BrokenProcessPool:
                    suspects.append(item)
            if not running:
                return suspects
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                item = running.pop(future)
                if isinstance(future.exception(), BrokenProcessPool):
                    suspects.append(item)
                else:
                    yield item, *future.result()
    except BaseException:
        for process in set(multiprocessing.active_children()) - before:
            process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Makes this worker end with the process that started it, and leaves Ctrl-C to that one."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()  # type: ignore[func-returns-value]


def _run_on_ray(
    function: Callable[[Any], Any], waiting: Iterator[Any], address: str, workers: int
) -> Iterator[Finished]:
    """Runs on so many workers; Ray itself tries again what died with a worker or a node."""
    here = address == "local"
    os.environ.update(_RAY_HERE if here else _RAY)
    try:
        import ray
    except ImportError:
        raise UsageError("Ray is not installed", hint=f"{extra_hint('ray')}, or leave out --engine") from None
    # In a short path, as those of sockets are limited; Ray opens its own folder to everyone.
    folder = tempfile.mkdtemp(prefix="signet-sync-", dir="/tmp") if here else ""
    given: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": 100 << 20}
    given["_temp_dir"] = f"{folder}/ray"
    host, _, port = address.rpartition("://")[2].rpartition(":")
    try:
        try:
            if port.isdigit():  # where nothing answers, Ray would wait minutes
                socket.create_connection((host.strip("[]"), int(port)), timeout=10.0).close()
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", **(given if here else {}))
        except Exception as error:  # Ray raises a plain one if its node does not start in time
            message = f"Ray does not start or cannot be reached: {type(error).__name__}"
            hint = "check --address and that the cluster runs, or leave out --engine"
            raise SignetSyncError(message, path=address, hint=hint, code="engine-unreachable") from error
        work = ray.remote(num_cpus=1, max_retries=TRIES - 1)(try_call)
        running: dict[Any, Any] = {}
        while True:
            for item in islice(waiting, 2 * workers - len(running)):
                running[work.remote(function, item)] = item
            if not running:
                return
            done = ray.wait(list(running), num_returns=1)[0][0]
            item = running.pop(done)
            try:
                yield item, *ray.get(done)
            except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.ObjectLostError):
                yield item, None, DIED
            except ray.exceptions.RayError as error:  # another version may be on the node
                yield item, None, f"{type(error).__name__}: is signet-sync in this version on every node?"
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


# ── what is run for many ──


_Progress = Callable[[int, int], None] | None  # how many are done, of how many


def inspect(asked: tuple[str, int]) -> dict[str, Any]:
    """Returns the document of `check --json` of one workspace, at a time in microseconds; writes nothing."""
    workspace, now_us = asked
    with open_place(workspace) as place:
        place.fetch()
        checked = integrity_check.check(place.root, now_us=now_us)
        return integrity_check.document(place.name, checked, now_us, strict=False)


def check(named: Sequence[str], now_us: int, progress: _Progress = None, **engine: Any) -> dict[str, Any]:
    """Returns the document of `fleet check --json`: the state of every match, and what is wrong in them.

    Raises as `matches` and `run` do.
    """
    counts, problems = Counter(integrity_check.counts(CheckResult())), list[dict[str, Any]]()

    def take(name: str, document: dict[str, Any]) -> tuple[str, str]:
        counts.update(document["counts"])
        found = [{"workspace": name, **one} for one in document["problems"]]
        problems.extend(found)
        wrong = sum(one["verdict"] in PROBLEMS for one in found)
        if wrong:
            return "damaged", f"{wrong} of its files"
        return ("ok" if document["counts"]["scanned"] else "empty"), ""

    states = _run(named, inspect, (now_us,), take, progress, engine)
    problems.sort(key=lambda one: (one["workspace"], one["path"], one.get("line", 0)))
    return answer(states) | {"counts": dict(counts), "problems": problems}


def share_targets(
    named: Sequence[str], url: str, holds: str, now_us: int, progress: _Progress = None, **engine: Any
) -> dict[str, Any]:
    """Returns the document of `fleet share TARGET… --json`; a workspace that cannot be read keeps its rows.

    Raises as `check` does, and `SignetSyncError` if nothing can be written at the URL.
    """
    url, done = Tables(url).url, dict[str, str]()

    def take(name: str, found: tuple[str, str]) -> tuple[str, str]:
        done[name] = found[1]
        return found[0], ""

    states = _run(named, share_target, (url, holds, now_us), take, progress, engine)
    rows = [(name, state, why, {"shared": done.get(name, "")}) for name, state, why, _ in states]
    return answer(rows) | {"url": url}


def _run(
    named: Sequence[str],
    function: Callable[[Any], Any],
    more: tuple[Any, ...],
    take: Callable[[str, Any], tuple[str, str]],
    progress: _Progress,
    engine: dict[str, Any],
) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Runs a function for every match that may have an answer; returns the state of each, which `take` finds in it."""
    found = matches(named)
    states = [(name, state, why, dict[str, Any]()) for name, (state, why) in found.items() if state]
    asked = [(name, *more) for name, (state, _) in found.items() if not state]
    for number, (item, result, failure) in enumerate(run(function, asked, **engine), 1):
        if isinstance(failure, Exception):
            state, why = state_of(failure)
        else:
            state, why = ("unreachable", failure) if failure is not None else take(item[0], result)
        states.append((item[0], state, why, {}))
        if progress is not None:
            progress(number, len(asked))
    return states
