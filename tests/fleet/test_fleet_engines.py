"""Engines: every item ends exactly once, whatever happens to its worker. The tests of Ray are slow and need it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fleet_functions as given
import pytest
from agents import until

from signet_sync.errors import UsageError
from signet_sync.fleet import engines
from signet_sync.fleet.engines import DIED

HERE: dict[str, Any] = {"workers": 2}
RAY: dict[str, Any] = {"address": "local", "workers": 2}
BOTH = [HERE, pytest.param(RAY, marks=pytest.mark.slow)]
NUMBERS = [str(number) for number in range(20)]


@pytest.fixture(autouse=True)
def with_ray(request: pytest.FixtureRequest) -> None:
    # Not imported: Ray reads its environment then, which the engine sets.
    if request.node.get_closest_marker("slow") and importlib.util.find_spec("ray") is None:
        pytest.skip("needs Ray")


def outcomes(engine: dict[str, Any], function: Callable[[str], Any], items: list[str]) -> dict[str, tuple[Any, Any]]:
    """What became of each item; none may come twice."""
    found = [(item, (result, failure)) for item, result, failure in engines.run(function, items, **engine)]
    assert sorted(item for item, _ in found) == sorted(items)
    return dict(found)


@pytest.mark.parametrize("engine", BOTH)
def test_each_item_ends_once_whatever_becomes_of_its_worker(engine: dict[str, Any], tmp_path: Path) -> None:
    assert outcomes(engine, given.upper, ["a", "b"]) == {"a": ("A", None), "b": ("B", None)}
    assert outcomes(engine, given.upper, []) == {}
    found = outcomes(engine, given.failing, NUMBERS)
    result, failure = found.pop("7")
    assert result is None and failure.startswith("ValueError at fleet_functions.py:") and "secret" not in failure
    assert found == {one: (one, None) for one in NUMBERS if one != "7"}
    items = [*NUMBERS, str(tmp_path / "first"), str(tmp_path / "second")]
    assert outcomes(engine, given.killed_once, items) == {one: (one, None) for one in items}
    found = outcomes(engine, given.killed_by_seven, NUMBERS)
    assert found.pop("7") == (None, DIED)
    assert found == {one: (one, None) for one in NUMBERS if one != "7"}


@pytest.mark.parametrize("engine", BOTH)
def test_items_are_taken_as_workers_become_free_and_the_end_ends_all(engine: dict[str, Any], tmp_path: Path) -> None:
    """A hundred thousand workspaces do not wait in this process all at once, nor do their results."""
    taken = 0

    def asked() -> Iterator[str]:
        nonlocal taken
        for number in range(50):
            taken += 1
            yield str(number)

    for done, _ in enumerate(engines.run(given.upper, asked(), **engine), 1):
        assert taken <= done + 6
    assert taken == 50
    begun = engines.run(given.endless_but_first, [str(tmp_path / "started")] * 9, **engine)
    next(begun)

    def running() -> list[int]:
        numbers = [int(one.name.rpartition(".")[2]) for one in tmp_path.iterdir() if one.name.startswith("started.")]
        return [number for number in numbers if Path(f"/proc/{number}").exists()]

    if sys.platform == "linux":
        until(running)
    begun.close()  # type: ignore[attr-defined]
    until(lambda: running() == [])


@pytest.mark.parametrize("engine", BOTH)
def test_no_code_of_the_current_folder_is_run(
    engine: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which may be a workspace that came from elsewhere."""
    for name in ("multiprocessing", "signet_sync", "apsw", "encodings", "ray", "sitecustomize"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"open({str(tmp_path / 'run')!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    found, failure = outcomes(engine, given.path, ["x"])["x"]
    assert failure is None and str(tmp_path) not in found
    assert not (tmp_path / "run").exists()


def test_without_ray_or_its_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.MonkeyPatch.context() as without:
        without.setitem(sys.modules, "ray", None)
        with pytest.raises(UsageError, match="not installed") as raised:
            list(engines.run(given.upper, ["a"], **RAY))
        assert "signet-sync[ray]" in raised.value.hint
