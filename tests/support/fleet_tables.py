"""Makes the open tables of a place and reads them, as any program can."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, Answer, call

from signet_sync.fleet import engines
from signet_sync.fleet.engines import Engine, Finished, tried


def here(function: Callable[[Any], Any], items: Iterable[Any], engine: Engine) -> Iterator[Finished]:
    """The work of an engine in this process: its own are tested with each of them, and take a second to start."""
    for item in items:
        yield Finished(item, *tried(function, item))


def index(place: Path | str, *targets: Path | str, more: tuple[str, ...] = (), now: str = NOW) -> Answer:
    """`fleet index --json` of some workspaces into a place."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "run", here)
        return call("fleet", "index", *map(str, targets), "--tables", str(place), "--json", "--now", now, *more)


def workspaces(place: Path) -> list[str]:
    """The workspaces whose rows are whole."""
    return sorted(json.loads(path.read_text())["workspace"] for path in place.glob("workspaces/*.json"))


def rows(place: Path, table: str, workspace: Path | str) -> list[dict[str, Any]]:
    """The rows of a table that a workspace has, without its name."""
    from pyarrow import parquet

    found = [row for file in place.glob(f"{table}/*.parquet") for row in parquet.ParquetFile(file).read().to_pylist()]
    return [row for row in found if row.pop("workspace") == str(workspace)]


def all_rows(place: Path, workspace: Path | str) -> dict[str, list[dict[str, Any]]]:
    """The rows of every table."""
    return {table: rows(place, table, workspace) for table in ("verdicts", "sessions", "statements")}
