"""An object store in the memory of this process, through fsspec: `memory://…`; and workers that find the package."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import fsspec
import pytest
from workbench import ROOT


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the package and the functions of tests."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(ROOT / "tests/fleet"))))


@pytest.fixture
def memory() -> Iterator[Any]:
    """fsspec's file system, empty."""
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]
