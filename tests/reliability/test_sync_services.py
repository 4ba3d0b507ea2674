"""What Obsidian, cloud drives and checkouts do to a vault: no value lost, no copy indexed, no fight over a page."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import hand_edits
import pytest
from workbench import Vault, path_of, tree


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    """Two sessions that were indexed."""
    return Vault(tmp_path / "vault").indexed(1, 2)


# ── copies ──


def test_of_copies_of_pages_and_manifests_every_word_of_a_person_stays(vault: Vault) -> None:
    """Those of pages keep what somebody typed, those of artifacts and manifests are told and left."""
    page = vault.page()
    manifest = (vault / path_of("manifest")).read_bytes()
    theirs: dict[str, bytes] = {}
    for service in hand_edits.CONFLICTS:
        names = ("MEMORY.md", path_of("manifest"), path_of("summary"))
        own = (f"typed by {service}\n\n".encode() + page.encode(), manifest + f"said by {service}\n".encode(), b"")
        for path, raw in zip(names, own, strict=True):
            folder, _, name = path.rpartition("/")
            copy = hand_edits.conflict_name(name, service)
            theirs[f"{folder}/{copy}" if folder else copy] = raw or (vault / path).read_bytes()
    for path, raw in theirs.items():
        (vault / path).write_bytes(raw)
    for document in (vault.reindex(), vault.reindex("--full"), vault.reindex()):
        copies = {path for path in theirs if path.startswith("memory/")}
        told = vault.problems(document)
        assert copies <= {path for path, problem in told.items() if problem == ("ignored", "conflict-copy")}
        assert all((vault / path).read_bytes() == theirs[path] for path in copies)
        words = "".join(file.read_text() for file in vault.root.rglob("*.md") if file.is_file())
        for service in hand_edits.CONFLICTS:
            assert f"typed by {service}\n" in words and f"said by {service}\n" in words, service
        pages = [path for path in theirs if "/" not in path and (vault / path).exists()]
        assert not [path for path in pages if "signet:begin" in (vault / path).read_text()]
    assert vault.page() == page
    before = tree(vault.root)
    vault.reindex()
    assert tree(vault.root) == before
    assert vault.dump() == vault.dump_from_scratch()


# ── files that a service keeps elsewhere ──


def test_a_file_that_a_cloud_drive_took_off_the_disk_is_as_it_was_when_it_is_back(vault: Vault) -> None:
    path = vault / path_of("summary")
    stub = path.with_name(f".{path.name}.icloud")
    raw, rows = path.read_bytes(), vault.dump()
    path.unlink()
    stub.write_bytes(b"bplist00")
    document = vault.reindex()
    assert vault.problems(document)[path_of("summary")] == ("violation", "vanished")
    assert vault.problems(document)[f"memory/{stub.name}"] == ("ignored", "conflict-copy")
    assert document["counts"]["tombstones"] == 0
    shutil.move(stub, path)
    path.write_bytes(raw)
    assert not vault.reindex()["problems"] and vault.dump() == rows


def test_a_file_whose_bytes_are_in_the_cloud_is_not_fetched_and_keeps_its_row(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As macOS tells of it: its size stands there, and whoever reads it waits for the network."""
    path = vault / path_of("summary")
    os.utime(path, ns=(0, 10**18))  # else nobody would look at it again
    inode, really = path.stat().st_ino, os.fstat

    class Away:
        def __init__(self, status: os.stat_result) -> None:
            self.status, self.st_flags = status, 0x40000000

        def __getattr__(self, name: str) -> object:
            return getattr(self.status, name)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", lambda handle: Away(it) if (it := really(handle)).st_ino == inode else it)
        document = vault.reindex()
    assert vault.problems(document) == {path_of("summary"): ("invalid", "unreadable")}
    assert "not downloaded" in document["problems"][0]["message"] and path.stat().st_atime_ns == 0
    assert len(vault.hits("number1x")) == 2 and "number 1" in vault.page()
    assert not vault.reindex()["problems"]
