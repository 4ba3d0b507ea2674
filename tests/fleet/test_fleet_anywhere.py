"""The same vault in any place gives the same verdicts: object stores, archives, repositories."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import every_verdict
import pytest
from workbench import tree

from benchmarks.index_rows import canonical_dump
from signet_sync.fleet import read_only_index, workspaces
from signet_sync.formats.timestamps import parse_instant
from signet_sync.integrity import check

NOW = parse_instant("2026-03-30T00:00:00.000Z") or 0


def document(url: str) -> dict[str, Any]:
    """What `check --json --pages` says of a workspace, but for its address."""
    with workspaces.opened(url) as root:
        checked = check.check(root, now_us=NOW, pages=True)
        found = check.document(root, checked, NOW, strict=False)
        table = sorted([j.path, j.verdict, j.code, j.message] for j in checked.judgements)
    del found["workspace"]
    return {**found, "table": table}


def assert_equal(url: str, root: Path) -> dict[str, Any]:
    """Compares a place with a folder, as bytes."""
    there, here = document(url), document(str(root))
    assert json.dumps(there, indent=1) == json.dumps(here, indent=1)
    return there


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vault of all verdicts."""
    return every_verdict.make(tmp_path_factory.mktemp("anywhere") / "vault")


def put(system: Any, top: str, files: dict[str, bytes]) -> None:
    """Puts files into a store."""
    for path, raw in files.items():
        system.pipe_file(f"{top}/{path}", raw)


def test_the_vault_has_every_verdict(vault: Path) -> None:
    found = document(str(vault))
    verdicts = {verdict for _, verdict, _, _ in found["table"]} | {one["verdict"] for one in found["problems"]}
    assert verdicts == {"indexed", "invalid", "violation", "ignored", "tombstoned", "tombstone"}
    assert len({one["code"] for one in found["problems"]}) > 10, found["problems"]
    assert {"link-broken", "future", "setting-ignored"} <= {one["code"] for one in found["notes"]}


def test_an_object_store_gives_the_same(vault: Path, memory: Any, tmp_path: Path) -> None:
    put(memory, "/bucket/some/where", every_verdict.files(vault))
    before = tree(tmp_path)
    found = assert_equal("memory://bucket/some/where", vault)
    assert found["problems"]
    assert tree(tmp_path) == before


def rows(url: str) -> list[tuple[Any, ...]]:
    """Every derived row of a workspace's index in memory, but for what machines differ in."""
    with workspaces.opened(url) as root, read_only_index.indexed(root, NOW) as database:
        return canonical_dump(database)


def test_an_index_in_memory_has_the_same_rows(vault: Path, memory: Any, tmp_path: Path) -> None:
    put(memory, "/bucket/where", every_verdict.files(vault))
    before = tree(vault), tree(Path(os.environ["SIGNET_STATE"]))
    there, here = rows("memory://bucket/where"), rows(str(vault))
    assert there == here
    assert {row[0] for row in here} > {"memory_artifacts", "recall_lines", "garden_files"}
    assert (tree(vault), tree(Path(os.environ["SIGNET_STATE"]))) == before


@pytest.fixture(scope="module")
def linked(vault: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vault with symlinks, which object stores have not: for a file, for a page, for a folder of entities."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.md").write_bytes(b"nobody reads this")
    place = outside / "vault"
    shutil.copytree(vault, place, ignore=shutil.ignore_patterns(".signet"))
    name, _ = made.summary(session_id="0195d7a2-6f00-7cc0-8a44-0000000000aa")
    (place / "memory" / name).symlink_to(outside / "secret.md")
    (place / "agents/linked").symlink_to(outside)
    (place / "agents/other/entities").mkdir(parents=True)
    (place / "agents/other/entities/user").symlink_to(outside)
    (place / "agents/other/MEMORY.md").symlink_to(outside / "secret.md")
    return place


def test_an_archive_gives_the_same(linked: Path, tmp_path: Path) -> None:
    archive = every_verdict.zipped(linked, tmp_path / "ci artifact.zip", "a folder/inside")
    found = assert_equal(f"zip://{archive}!/a folder/inside", linked)
    assert "it is a symlink" in {one["message"] for one in found["problems"]}
    assert document(f"zip://a folder/inside::{archive}") == found


def test_an_archive_in_a_store_gives_the_same(vault: Path, memory: Any, tmp_path: Path) -> None:
    memory.pipe_file("/ci/run.zip", every_verdict.zipped(vault, tmp_path / "it.zip").read_bytes())
    assert_equal("zip://::memory://ci/run.zip", vault)


def test_a_repository_gives_the_same(linked: Path, tmp_path: Path) -> None:
    repository = every_verdict.committed(linked, tmp_path / "repo")
    assert_equal(f"git+file://{repository}", linked)
    (repository / "MEMORY.md").write_bytes(b"not committed")
    found = assert_equal(f"git+file://{repository}@master", linked)
    assert "it is a symlink" in {one["message"] for one in found["problems"]}
