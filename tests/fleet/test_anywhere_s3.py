"""A workspace on S3: the same verdicts as of a folder, few requests, and what faults of the store become."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import every_verdict
import object_store
import pytest
from object_store import Store
from test_anywhere import NOW, assert_equal, document, put, rows

from signet_sync.errors import Unreachable, WorkspaceError
from signet_sync.fleet import workspaces
from signet_sync.integrity import check

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vault of all verdicts."""
    made = every_verdict.make(tmp_path_factory.mktemp("s3") / "vault")
    (made / "memory/a\nb.md").unlink()  # moto knows no such key
    return made


@pytest.fixture(scope="module")
def filled(vault: Path) -> Iterator[Store]:
    """A store with the vault in it."""
    with object_store.s3() as store:
        put(store.system, "bucket/some/where", every_verdict.files(vault))
        yield store


@pytest.fixture
def store(filled: Store) -> Iterator[Store]:
    """The store without faults."""
    filled.fault = lambda _method, _path: 0
    filled.asked.clear()
    yield filled
    filled.fault = lambda _method, _path: 0


URL = "s3://bucket/some/where"


def test_s3_gives_the_same(store: Store, vault: Path) -> None:
    assert_equal(URL, vault)
    asked = Counter(line.split(" ")[0] + (" list" if "list-type" in line else "") for line in store.asked)
    listed = [line for line in store.asked if "list-type" in line]
    assert asked.keys() == {"GET", "GET list"}, asked  # no request for the status of a file
    assert len(listed) == len(set(listed))  # each folder once
    assert rows(URL) == rows(str(vault))


def test_slow_answers_are_waited_for_together(store: Store, vault: Path) -> None:
    def slow(method: str, path: str) -> int:
        time.sleep(0.05 if path.endswith(".md") else 0)
        return 0

    store.fault = slow
    before = time.perf_counter()
    assert_equal(URL, vault)
    read = sum(".md?" in line for line in store.asked)
    # One after the other they would take as long as all the waits; the bound is generous for a busy machine.
    assert time.perf_counter() - before < read * 0.05 * 0.8 + 1, read
