"""Runs a function for every workspace, on an engine that schedules, retries and limits memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from signet_sync.fleet.finished import Finished, tried

__all__ = ["Engine", "Finished", "run", "tried"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Engine(NamedTuple):
    """Says where work runs: `ray` (on this machine, or at `address`) or `local`, a process pool; `workers` at once.

    With `workers` None the engine decides: one for each core.
    """

    kind: str = "ray"
    address: str | None = None
    workers: int | None = None


def run(
    function: Callable[[_Item], _Result], items: Iterable[_Item], engine: Engine
) -> Iterator[Finished[_Item, _Result]]:
    """Yields every item exactly once, as it is finished, in any order; items are taken as workers become free.

    The function is one that workers can import, of values that can be pickled. It may be called again for an item
    whose worker died. Ending the iteration ends all work. Raises `UsageError` without the engine, `SignetSyncError` if
    it cannot be reached.
    """
    if engine.kind == "local":
        from signet_sync.fleet import local_engine  # one of the two

        return local_engine.run(function, items, engine.workers or _cores())
    from signet_sync.fleet import ray_engine  # one of the two

    workers = engine.workers or (_cores() if engine.address is None else None)
    return ray_engine.run(function, items, engine.address, workers)


def _cores() -> int:
    """Returns how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1
