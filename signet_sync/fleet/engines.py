"""Runs a function for every workspace, in processes of this machine or on Ray; every item ends exactly once."""

import multiprocessing
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import chdir, contextmanager
from itertools import islice
from queue import SimpleQueue
from typing import Any, NamedTuple

from signet_sync.errors import SignetSyncError, UsageError, extra_hint, place_of

_Function = Callable[[Any], Any]

TRIES = 3  # of an item whose worker dies
DIED = "its worker died, each time it was tried"
# Nothing is sent to Ray's authors; Ray must not copy the current folder, perhaps a workspace, to the nodes; it would
# try for ever what exhausts the memory of a node.
_RAY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_task_oom_retries": str(TRIES - 1)}
# Ray of this machine: its ports are of the loopback interface only, as on macOS; other users have no token for them.
_RAY_HERE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token"}


class Engine(NamedTuple):
    """Says where work runs: `ray` (on this machine, or at `address`) or `local`, a process pool; `workers` at once.

    With `workers` None the engine decides: one for each core.
    """

    kind: str = "ray"
    address: str | None = None
    workers: int | None = None


class Finished(NamedTuple):
    """One item with its result, or with the reason for which there is none, which contains no text of a workspace."""

    item: Any
    result: Any
    failure: str = ""


def tried(function: _Function, item: Any) -> tuple[Any, str]:
    """Calls a function, in a worker; returns its result, or where it failed, without the error's text."""
    try:
        return function(item), ""
    except Exception as error:  # noqa: BLE001 - the engine would write it into its logs
        return None, place_of(error)


def run(function: _Function, items: Iterable[Any], engine: Engine) -> Iterator[Finished]:
    """Yields every item exactly once, as it is finished, in any order; items are taken as workers become free.

    The function is one that workers can import, of values that can be pickled. It may be called again for an item
    whose worker died. Ending the iteration ends all work. Raises `UsageError` without the engine, `SignetSyncError` if
    it cannot be reached.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1  # macOS has none
    if engine.kind == "local":
        return _run_here(function, items, engine.workers or cores)
    return _run_on_ray(function, items, engine.address, engine.workers or (cores if engine.address is None else None))


def _run_here(function: _Function, items: Iterable[Any], workers: int) -> Iterator[Finished]:
    """Runs in a pool of the standard library. What was in work when a worker died is tried by itself."""
    waiting = iter(items)
    while suspects := (yield from _run_in_pool(function, waiting, workers)):
        for item in suspects:
            for _try in range(TRIES):
                if not (yield from _run_in_pool(function, iter((item,)), 1)):
                    break
            else:
                yield Finished(item, None, DIED)


def _run_in_pool(function: _Function, waiting: Iterator[Any], workers: int) -> Generator[Finished, None, list[Any]]:
    """Yields finished items until none is waiting, or a worker died; returns what was in work then.

    A pool does not tell over which item its worker died, and ends.
    """
    running: dict[Future[Any], Any] = {}
    suspects: list[Any] = []
    with _pool(workers) as pool:
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
def _pool(count: int) -> Iterator[ProcessPoolExecutor]:
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
    parent = multiprocessing.parent_process()
    assert parent is not None
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()  # type: ignore[func-returns-value]


def _run_on_ray(
    function: _Function, items: Iterable[Any], address: str | None, workers: int | None
) -> Iterator[Finished]:
    """Runs on so many workers of this machine, or on a cluster: without a number, as far as it goes.

    Ray tries again what died with a worker or a node, and ends workers that would exhaust a node's memory.
    """
    os.environ.update(_RAY if address is not None else _RAY | _RAY_HERE)
    if address is None:
        # A process of Ray keeps its first one.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray
    except ImportError:
        hint = f"{extra_hint('fleet')}, or use --engine local"
        raise UsageError("Ray is not installed", hint=hint, code="no-engine") from None
    # It would print what the nodes say between the lines of our own output.
    ray._private.worker._worker_logs_enabled = False
    with _ray_at(ray, address, workers) as most:
        work = ray.remote(num_cpus=1, max_retries=TRIES - 1)(tried)
        running: dict[Future[Any], Any] = {}
        done: SimpleQueue[Future[Any]] = SimpleQueue()
        waiting = iter(items)
        while True:
            for item in islice(waiting, most - len(running)):
                future = work.remote(function, item).future()
                running[future] = item
                future.add_done_callback(done.put)
            if not running:
                return
            future = done.get()
            item = running.pop(future)
            try:
                yield Finished(item, *future.result())
            except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.ObjectLostError):
                yield Finished(item, None, DIED)
            except ray.exceptions.RayError as error:
                # `tried` raises nothing: another version may be on the node.
                yield Finished(item, None, f"{type(error).__name__}: is signet-sync in this version on every node?")


@contextmanager
def _ray_at(ray: Any, address: str | None, workers: int | None) -> Iterator[int]:
    """Yields how many items may be in work and waiting at once; Ray of this machine is started and ended with it."""
    # In a short path, as those of sockets are limited; Ray opens its own folder to everyone.
    folder = tempfile.mkdtemp(prefix=f"signet-sync-{os.getpid()}-", dir="/tmp") if address is None else ""
    before = signal.getsignal(signal.SIGTERM)
    # Results are small; Ray would take a third of the memory for them.
    here: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False, "object_store_memory": 100 << 20}
    here["_temp_dir"] = os.path.join(folder, "ray")
    host, _, port = (address or "").rpartition("://")[2].rpartition(":")
    try:
        try:
            if port.isdigit():  # where nothing answers, Ray would wait minutes
                socket.create_connection((host.strip("[]"), int(port)), timeout=10.0).close()
            with chdir("/"):  # Ray puts the current folder, perhaps a workspace, on the module path of its workers
                given = here if address is None else {}
                ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **given)
        except Exception as error:  # Ray raises a plain one if its node does not start in time
            message = f"Ray does not start or cannot be reached: {type(error).__name__}"
            hint = "use --engine local" if address is None else "check --address and that the cluster runs"
            raise SignetSyncError(message, path=address, hint=hint, code="engine-unreachable") from error
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # Ray's own ends the process with the signal's number
        # One more for each worker, so that none waits for this process.
        yield workers if address and workers else 2 * int(ray.cluster_resources().get("CPU", 1))
    finally:
        ray.shutdown()
        signal.signal(signal.SIGTERM, before)
        shutil.rmtree(folder, ignore_errors=True)
