"""The same vault in a folder, an object store, an archive and a repository gives byte-equal tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import every_verdict
import pytest
from fleet_tables import files_of, index, manifest, rows, stray
from workbench import NOW, call

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vault of all verdicts."""
    made = every_verdict.make(tmp_path_factory.mktemp("everywhere") / "vault")
    (made / "memory/a\nb.md").unlink()  # S3 by moto knows no such key
    return made


@pytest.fixture
def bucket(vault: Path) -> Iterator[Any]:
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for path, raw in every_verdict.files(vault).items():
        store.pipe_file(f"/bucket/vault/{path}", raw)
    yield store
    store.store.clear()
    store.pseudo_dirs[:] = [""]


def test_every_place_gives_byte_equal_tables(vault: Path, bucket: Any, tmp_path: Path) -> None:
    archive = every_verdict.zipped(vault, tmp_path / "vault.zip", "inner")
    repository = every_verdict.committed(vault, tmp_path / "repository")
    places = [f"zip://{archive}!/inner", f"git+file://{repository}", "memory://bucket/vault"]
    answer = index(tmp_path / "tables", vault, *places)
    assert answer.code == 0 and answer.json["indexed"] == 4, answer
    names = sorted(manifest(tmp_path / "tables"))
    assert len(names) == 4
    tables = [files_of(tmp_path / "tables", name) for name in names]
    assert len(tables[0]) == 4 and [one for one in tables if one != tables[0]] == []
    assert index(tmp_path / "tables", vault, *places).json["unchanged"] == 4
    assert stray(tmp_path / "tables") == []


def test_they_hold_what_check_says(vault: Path, tmp_path: Path) -> None:
    index(tmp_path / "tables", vault)
    problems = call("--workspace", vault, "check", "--json", "--now", NOW).json["problems"]
    found = [
        one for one in rows(tmp_path / "tables", "verdicts", vault) if one["verdict"] not in ("indexed", "tombstone")
    ]
    fields = ("path", "verdict", "code", "message")
    assert len(problems) > 20
    assert sorted([one[name] for name in fields] for one in found) == sorted(
        [one[name] for name in fields] for one in problems
    )


def test_a_change_in_an_object_store_is_seen_by_its_tag(vault: Path, bucket: Any, tmp_path: Path) -> None:
    url = "memory://bucket/vault"
    index(tmp_path / "tables", url)
    before = files_of(tmp_path / "tables", url)
    valid = [one["path"] for one in rows(tmp_path / "tables", "verdicts", url) if one["verdict"] == "indexed"]
    path = f"/bucket/vault/{next(one for one in valid if one.endswith('--summary.md'))}"
    bucket.pipe_file(path, bucket.cat_file(path)[:-1] + b"!")
    assert index(tmp_path / "tables", url).json["indexed"] == 1
    assert files_of(tmp_path / "tables", url)["verdicts"] != before["verdicts"]
    bucket.rm("/bucket/vault", recursive=True)
    answer = index(tmp_path / "tables", url)
    assert answer.code == 1 and len(answer.json["unreachable"]) == 1
    assert manifest(tmp_path / "tables")[url]


@pytest.mark.slow
def test_s3_gives_and_takes_the_same_tables(vault: Path, tmp_path: Path) -> None:
    object_store = pytest.importorskip("object_store")
    with object_store.s3() as store:
        for path, raw in every_verdict.files(vault).items():
            store.system.pipe_file(f"bucket/vault/{path}", raw)
        store.system.invalidate_cache()
        answer = index(tmp_path / "tables", vault, "s3://bucket/vault")
        assert answer.code == 0, answer
        assert files_of(tmp_path / "tables", vault) == files_of(tmp_path / "tables", "s3://bucket/vault")
        assert index("s3://bucket/tables", vault, "s3://bucket/vault").code == 0
        assert index("s3://bucket/tables", vault, "s3://bucket/vault").json["unchanged"] == 2
        store.system.get("bucket/tables", str(tmp_path / "copy"), recursive=True)
        found = next((tmp_path / "copy").rglob("manifest.json")).parent
        for name in (vault, "s3://bucket/vault"):
            assert files_of(found, name) == files_of(tmp_path / "tables", name)
        assert stray(found) == []
        asked = len(store.asked)
        index("s3://bucket/tables", "s3://bucket/vault")
        requests = store.asked[asked:]
        assert [one for one in requests if one.startswith(("PUT", "DELETE", "POST"))] == []
        assert len(requests) < 60, requests
        removed = next(one for one in store.system.find("bucket/vault/memory") if one.endswith("--manifest.md"))
        store.system.rm_file(removed)
        shutil.rmtree(tmp_path / "copy")
        index("s3://bucket/tables", vault, "s3://bucket/vault")
        store.system.invalidate_cache()
        store.system.get("bucket/tables", str(tmp_path / "copy"), recursive=True)
        assert stray(next((tmp_path / "copy").rglob("manifest.json")).parent) == []
