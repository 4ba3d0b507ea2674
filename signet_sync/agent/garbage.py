"""Work that makes much and no cycles goes without the garbage collector."""

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
