"""The garbage collector stays away from work that makes no cycles, and from what lives as long as the process."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected(*, wanted: bool = True) -> Iterator[None]:
    """No collection meanwhile, where `wanted` and unless somebody has switched it off already."""
    collecting = wanted and gc.isenabled()
    if collecting:
        gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def set_apart() -> None:
    """Spares all that is there now from being looked through again: a look at all of it takes longer than a change."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
