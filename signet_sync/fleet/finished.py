"""Says how the work on one item ended, on whatever engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from signet_sync.errors import place_of

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# So often an item is tried whose worker dies.
TRIES = 3
DIED = "its worker died, each time it was tried"
OUT_OF_MEMORY = "it needs more memory than its machine has"


class Finished(NamedTuple, Generic[_Item, _Result]):
    """One item with its result, or with the reason for which there is none, which contains no text of a workspace."""

    item: _Item
    result: _Result | None
    failure: str = ""


def tried(function: Callable[[_Item], _Result], item: _Item) -> tuple[_Result | None, str]:
    """Calls a function, in a worker; returns its result, or where it failed, without the error's text."""
    try:
        return function(item), ""
    except Exception as error:  # noqa: BLE001 - the engine would write it into its logs
        return None, place_of(error)
