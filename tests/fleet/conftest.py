"""An object store in the memory of this process, through fsspec: `memory://…`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import fsspec
import pytest
from memory_store import MemoryStore

from signet_sync.fleet.removal import object_store


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """fsspec's file system, empty; sessions can be removed from it."""
    monkeypatch.setitem(object_store.STORES, "memory", MemoryStore)
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]
