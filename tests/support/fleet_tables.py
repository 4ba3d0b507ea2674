"""Looks at the open tables of a place as a reader does: by its manifest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from workbench import NOW, Answer, call

from signet_sync.fleet import engines
from signet_sync.fleet.engines import Engine, Finished, tried


def here(function: Callable[[Any], Any], items: Iterable[Any], engine: Engine) -> Iterator[Finished[Any, Any]]:
    """The work of an engine in this process: its own are tested with each of them, and take a second to start."""
    for item in items:
        yield Finished(item, *tried(function, item))


def index(place: Path | str, *targets: Path | str, more: tuple[str, ...] = (), now: str = NOW) -> Answer:
    """`fleet index --json` of some workspaces into a place."""
    where = "--to" if str(place).startswith("postgresql://") else "--tables"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "run", here)
        return call("fleet", "index", *map(str, targets), where, str(place), "--json", "--now", now, *more)


def manifest(place: Path) -> dict[str, Any]:
    """The workspaces of the manifest, by name."""
    document = json.loads((place / "manifest.json").read_text())
    return {one["workspace"]: one for one in document["workspaces"]}


def files_of(place: Path, workspace: Path | str) -> dict[str, str]:
    """The name of each table's file of a workspace: it says what is in it."""
    files = manifest(place)[str(workspace)]["files"]
    return {table: file["path"].rpartition("/")[2] for table, file in files.items()}


def rows(place: Path, table: str, workspace: Path | str) -> list[dict[str, Any]]:
    """The rows of a table that a workspace has."""
    from pyarrow import parquet

    path = place / manifest(place)[str(workspace)]["files"][table]["path"]
    found: list[dict[str, Any]] = parquet.ParquetFile(path).read(use_threads=False).to_pylist()
    return found


def stray(place: Path) -> list[str]:
    """What lies in a place that the manifest does not name, and files that are not what their name says."""
    named = {file["path"] for one in manifest(place).values() for file in one["files"].values()} | {"manifest.json"}
    there = {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}
    changed = {
        path
        for path in named & there - {"manifest.json"}
        if sha256((place / path).read_bytes()).hexdigest()[:32] != Path(path).stem
    }
    return sorted((named ^ there) | changed)
