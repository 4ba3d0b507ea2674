"""Runs a function for every workspace on Ray: on this machine, or on the nodes of a cluster.

Ray schedules, retries what died with a worker or a node, and ends workers that would exhaust a node's memory.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import chdir, contextmanager
from queue import SimpleQueue
from typing import Any, TypeVar

from signet_sync.errors import SignetSyncError, UsageError, extra_hint
from signet_sync.fleet.finished import DIED, OUT_OF_MEMORY, TRIES, Finished, tried

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Nothing is sent to Ray's authors; Ray must not copy the current folder, perhaps a workspace, to the nodes; it would
# try for ever what exhausts the memory of a node.
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_task_oom_retries": str(TRIES - 1),
    # A signal is no failure that needs a stack; a warning of older versions is about GPUs.
    "RAY_DISABLE_FAILURE_SIGNAL_HANDLER": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
# Ray of this machine: its ports are of the loopback interface only, as on macOS; other users have no token for them.
_OF_THIS_MACHINE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token"}
# Results are small; Ray would take a third of the memory.
_OBJECT_STORE = 100 << 20
_SECONDS_TO_ANSWER = 10.0


def run(
    function: Callable[[_Item], _Result], items: Iterable[_Item], address: str | None, workers: int | None
) -> Iterator[Finished[_Item, _Result]]:
    """Yields every item once, as `engines.run` does: on so many workers of this machine, or on a cluster.

    Without a number, a cluster is used as far as it goes.
    """
    os.environ.update(_ENVIRONMENT)
    if address is None:
        os.environ.update(_OF_THIS_MACHINE)
        # A process of Ray keeps its first one.
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    try:
        import ray
    except ImportError:
        hint = f"{extra_hint('fleet')}, or use --engine local"
        raise UsageError("Ray is not installed", hint=hint, code="no-engine") from None
    # It would print what the nodes say between the lines of our own output.
    ray._private.worker._worker_logs_enabled = False
    return _run(ray, function, items, address, workers)


def _run(
    ray: Any, function: Callable[[_Item], _Result], items: Iterable[_Item], address: str | None, workers: int | None
) -> Iterator[Finished[_Item, _Result]]:
    with _connected(ray, address, workers) as most:
        work = ray.remote(num_cpus=1, max_retries=TRIES - 1)(tried)
        running: dict[Future[Any], _Item] = {}
        done: SimpleQueue[Future[Any]] = SimpleQueue()
        for item in items:
            future = work.remote(function, item).future()
            running[future] = item
            future.add_done_callback(done.put)
            if len(running) >= most:
                future = done.get()
                yield _finished(ray, running.pop(future), future)
        while running:
            future = done.get()
            yield _finished(ray, running.pop(future), future)


def _finished(ray: Any, item: _Item, future: Future[Any]) -> Finished[_Item, Any]:
    try:
        return Finished(item, *future.result())
    except ray.exceptions.OutOfMemoryError:
        return Finished(item, None, OUT_OF_MEMORY)
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.ObjectLostError):
        return Finished(item, None, DIED)
    except ray.exceptions.RayTaskError as error:
        # `tried` raises nothing: it could not be loaded.
        why = f"{type(error.cause).__name__}: is this version of signet-sync, with the extra fleet, on every node?"
        return Finished(item, None, why)
    except ray.exceptions.RayError as error:
        return Finished(item, None, type(error).__name__)


@contextmanager
def _connected(ray: Any, address: str | None, workers: int | None) -> Iterator[int]:
    """Yields how many items may be in work and waiting at once; Ray of this machine is started and ended with it."""
    # In a short path, as those of sockets are limited; Ray opens its own folder to everyone.
    folder = tempfile.mkdtemp(prefix=f"signet-sync-{os.getpid()}-", dir="/tmp") if address is None else ""
    before = signal.getsignal(signal.SIGTERM)
    try:
        _connect(ray, address, workers, os.path.join(folder, "ray"))
        if signal.getsignal(signal.SIGTERM) is not before:  # Ray's own ends the process with the signal's number
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        if address is not None and workers is not None:
            yield workers
        else:
            # One more for each worker, so that none waits for this process.
            yield 2 * int(ray.cluster_resources().get("CPU", 1))
    finally:
        ray.shutdown()
        if signal.getsignal(signal.SIGTERM) is not before:
            signal.signal(signal.SIGTERM, before)
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _connect(ray: Any, address: str | None, workers: int | None, folder: str) -> None:
    """Starts Ray on this machine, with its files in a folder, or connects to a cluster. Raises `SignetSyncError`."""
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        # Ray puts the current folder, perhaps a workspace, on the module path of its workers.
        with chdir("/"):
            if address is not None:
                _require_open(address)
                ray.init(address=address, **quiet)
            else:
                ray.init(
                    address="local",
                    num_cpus=workers,
                    include_dashboard=False,
                    object_store_memory=_OBJECT_STORE,
                    _temp_dir=folder,
                    **quiet,
                )
    except Exception as error:  # Ray raises a plain one if its node does not start in time
        if address is None:
            message, hint = "Ray does not start on this machine", "call it again, or use --engine local"
        else:
            message = "Ray cannot be reached"
            hint = "check --address and that the cluster runs, or use --engine local"
        raise SignetSyncError(
            f"{message}: {type(error).__name__}", path=address, hint=hint, code="engine-unreachable"
        ) from error


def _require_open(address: str) -> None:
    """Raises `OSError` if nothing answers at an address, for which Ray would wait minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_ANSWER).close()
