"""Engines: every item ends exactly once, whatever happens to its worker.

The tests of Ray are slow and need it: `pip install ray`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fleet_functions as given
import pytest
from agents import until
from workbench import ROOT

from signet_sync.errors import SignetSyncError, UsageError
from signet_sync.fleet import engines
from signet_sync.fleet.engines import DIED, Engine

SUPPORT = str(ROOT / "tests/support")
LOCAL = Engine("local", workers=2)
RAY = Engine("ray", workers=2)
BOTH = [LOCAL, pytest.param(RAY, marks=pytest.mark.slow)]
NUMBERS = [str(number) for number in range(20)]
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@pytest.fixture(autouse=True)
def importable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the package and the functions of tests."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), SUPPORT)))
    # Not imported: Ray reads its environment then, which the engine sets.
    if request.node.get_closest_marker("slow") and importlib.util.find_spec("ray") is None:
        pytest.skip("needs Ray")


def outcomes(engine: Engine, function: Callable[[str], Any], items: list[str]) -> dict[str, tuple[Any, str]]:
    """What became of each item; none may come twice."""
    found = [(one.item, (one.result, one.failure)) for one in engines.run(function, items, engine)]
    assert sorted(item for item, _ in found) == sorted(items)
    return dict(found)


def running(folder: Path) -> list[int]:
    """The processes that `endless` has left their numbers of, and that are there."""
    numbers = [int(one.name.rpartition(".")[2]) for one in folder.iterdir() if one.name.startswith("started.")]
    return [number for number in numbers if Path(f"/proc/{number}").exists()]


@pytest.mark.parametrize("engine", BOTH)
def test_each_item_once(engine: Engine, tmp_path: Path) -> None:
    assert outcomes(engine, given.upper, ["a", "b", "c"]) == {"a": ("A", ""), "b": ("B", ""), "c": ("C", "")}
    assert outcomes(engine, given.upper, []) == {}


@pytest.mark.parametrize("engine", BOTH)
def test_an_error_is_named_without_its_text(engine: Engine) -> None:
    found = outcomes(engine, given.failing, NUMBERS)
    result, failure = found.pop("7")
    assert result is None and failure.startswith("ValueError at fleet_functions.py:") and "secret" not in failure
    assert found == {one: (one, "") for one in NUMBERS if one != "7"}


@pytest.mark.parametrize("engine", BOTH)
def test_a_worker_is_killed_once(engine: Engine, tmp_path: Path) -> None:
    items = [*NUMBERS, str(tmp_path / "first"), str(tmp_path / "second")]
    assert outcomes(engine, given.killed_once, items) == {one: (one, "") for one in items}


@pytest.mark.parametrize("engine", BOTH)
def test_an_item_kills_every_worker(engine: Engine) -> None:
    found = outcomes(engine, given.killed_by_seven, NUMBERS)
    assert found.pop("7") == (None, DIED)
    assert found == {one: (one, "") for one in NUMBERS if one != "7"}


@pytest.mark.parametrize("engine", BOTH)
def test_items_are_taken_as_workers_become_free(engine: Engine) -> None:
    """A hundred thousand workspaces do not wait in this process all at once, nor do their results."""
    taken = 0

    def asked() -> Iterator[str]:
        nonlocal taken
        for number in range(100):
            taken += 1
            yield str(number)

    for done, _ in enumerate(engines.run(given.upper, asked(), engine), 1):
        assert taken <= done + 6
    assert taken == 100


@linux
@pytest.mark.parametrize("engine", BOTH)
def test_the_end_of_the_iteration_ends_all_work(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    make = tempfile.mkdtemp
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **given: made.append(make(**given)) or made[-1])
    begun = engines.run(given.endless_but_first, [str(tmp_path / "started")] * 9, engine)
    next(begun)
    until(lambda: running(tmp_path))
    begun.close()  # type: ignore[attr-defined]
    assert running(tmp_path) == []
    assert len(made) == (engine is RAY) and not any(map(os.path.exists, made))


@pytest.mark.parametrize("engine", BOTH)
def test_no_code_of_the_current_folder_is_run(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which may be a workspace that came from elsewhere."""
    for name in ("multiprocessing", "signet_sync", "apsw", "encodings", "ray"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w').close()\n")
    (tmp_path / "sitecustomize.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    found, failure = outcomes(engine, given.surroundings, ["x"])["x"]
    assert failure == ""
    assert str(tmp_path) not in found["path"].split(os.pathsep)
    assert not (tmp_path / "run").exists()


def listening(pids: set[int]) -> set[str]:
    """The addresses, in hexadecimal, at which processes wait for connections."""
    sockets: set[str] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for descriptor in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(descriptor.path).removeprefix("socket:[").rstrip("]"))
    found = set()
    for name in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in sockets:
                found.add(words[1].partition(":")[0])
    return found


def descendants(pid: int) -> set[int]:
    found = {pid}
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in task.read_text().split():
                found |= descendants(int(child))
    return found


@linux
@pytest.mark.slow
def test_ray_of_this_machine_keeps_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else connects to it; its files, which others cannot read, are without a text."""
    seen: dict[str, bytes] = {}
    remove = shutil.rmtree

    def look(folder: str, **given: Any) -> None:
        if not folder.startswith("/tmp/signet-sync-"):
            return remove(folder, **given)
        assert os.stat(folder).st_mode & 0o077 == 0
        for where, _, names in os.walk(folder):
            for name in names:
                path = Path(where, name)
                if path.is_file():
                    seen[str(path)] = path.read_bytes()
        return remove(folder, **given)

    monkeypatch.setattr(shutil, "rmtree", look)
    begun = engines.run(given.failing, [*NUMBERS, "canary of 20"], RAY)
    next(begun)
    before = descendants(os.getpid())
    assert len(before) > 5
    # 127.0.0.1, alone and as an address of IPv6
    assert listening(before - {os.getpid()}) <= {"0100007F", "0000000000000000FFFF00000100007F"}
    assert len(list(begun)) == len(NUMBERS)
    assert any("raylet" in path for path in seen)
    assert [path for path, raw in seen.items() if b"the secret of" in raw or b"canary of" in raw] == []
    assert not (Path.home() / ".ray").exists()


def test_without_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError) as raised:
        list(engines.run(given.upper, ["a"], RAY))
    assert "--engine local" in raised.value.hint and "signet-sync[fleet]" in raised.value.hint


@pytest.mark.slow
def test_a_cluster_that_is_not_there() -> None:
    with pytest.raises(SignetSyncError) as raised:
        list(engines.run(given.upper, ["a"], Engine("ray", "127.0.0.1:1")))
    assert raised.value.code == "engine-unreachable"
