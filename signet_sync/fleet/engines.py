"""Runs a function for every workspace, on an engine that schedules, retries and limits memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from signet_sync.errors import place_of

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# So often an item is tried whose worker dies.
TRIES = 3
DIED = "its worker died, each time it was tried"
OUT_OF_MEMORY = "it needs more memory than its machine has"


class Engine(NamedTuple):
    """Says where work runs: `ray` (on this machine, or at `address`) or `local`, a process pool; `workers` at once.

    With `workers` None the engine decides: one for each core.
    """

    kind: str = "ray"
    address: str | None = None
    workers: int | None = None


class Finished(NamedTuple, Generic[_Item, _Result]):
    """One item with its result, or with the reason for which there is none, which contains no text of a workspace."""

    item: _Item
    result: _Result | None
    failure: str = ""


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

        return local_engine.run(function, items, engine.workers or cores())
    from signet_sync.fleet import ray_engine  # one of the two

    return ray_engine.run(function, items, engine)


def tried(function: Callable[[_Item], _Result], item: _Item) -> tuple[_Result | None, str]:
    """Calls a function, in a worker; returns its result, or where it failed, without the error's text."""
    try:
        return function(item), ""
    except Exception as error:  # noqa: BLE001 - the engine would write it into its logs
        return None, place_of(error)


def cores() -> int:
    """Returns how many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        return os.cpu_count() or 1
