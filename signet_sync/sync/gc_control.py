"""Pauses Python's garbage collector during work that makes no cycles, and exempts long-lived objects from it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected(*, wanted: bool = True) -> Iterator[None]:
    """Pauses collection within the block if `wanted`, unless it is already disabled."""
    collecting = wanted and gc.isenabled()
    if collecting:
        gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def set_apart() -> None:
    """Exempts all present objects from later collections: examining all of them takes longer than handling a change."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
