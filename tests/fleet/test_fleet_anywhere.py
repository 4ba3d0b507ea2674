"""The same vault in any place gives the same verdicts; places that lie, change, leave themselves or do not answer."""

from __future__ import annotations

import json
import os
import shutil
import stat
import struct
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import every_verdict
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from workbench import tree

from benchmarks.index_rows import canonical_dump
from signet_sync.errors import SignetSyncError, Unreachable, UsageError, WorkspaceError
from signet_sync.fleet.index import indexed
from signet_sync.fleet.places import opened, shown
from signet_sync.formats.timestamps import parse_instant
from signet_sync.integrity import check
from signet_sync.storage import files

NOW = parse_instant("2026-03-30T00:00:00.000Z") or 0
NAME, RAW = made.summary()


def document(url: str) -> dict[str, Any]:
    """What `check --json --pages` says of a workspace, but for its address."""
    with opened(url) as place:
        checked = check.check(place.name, vault=place.vault, now_us=NOW, pages=True)
        found = check.document(place.name, checked, NOW, strict=False)
        table = sorted([j.path, j.verdict, j.code, j.message] for j in checked.judgements)
    del found["workspace"]
    return {**found, "table": table}


def assert_equal(url: str, root: Path) -> dict[str, Any]:
    """Compares a place with a folder, as bytes."""
    there, here = document(url), document(str(root))
    assert json.dumps(there, indent=1) == json.dumps(here, indent=1)
    return there


def put(system: Any, top: str, entries: dict[str, bytes]) -> None:
    """Puts files into a store."""
    for path, raw in entries.items():
        system.pipe_file(f"{top}/{path}", raw)


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vault of all verdicts."""
    return every_verdict.make(tmp_path_factory.mktemp("anywhere") / "vault")


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


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A vault of one session."""
    (tmp_path / "small/memory").mkdir(parents=True)
    for name, raw in made.session().items():
        (tmp_path / "small/memory" / name).write_bytes(raw)
    return tmp_path / "small"


def test_the_vault_has_every_verdict(vault: Path) -> None:
    found = document(str(vault))
    verdicts = {verdict for _, verdict, _, _ in found["table"]} | {one["verdict"] for one in found["problems"]}
    assert verdicts == {"indexed", "invalid", "violation", "ignored", "tombstoned", "tombstone"}
    assert len({one["code"] for one in found["problems"]}) > 10, found["problems"]
    assert {"link-broken", "future", "setting-ignored"} <= {one["code"] for one in found["notes"]}


def test_an_object_store_gives_the_same(vault: Path, memory: Any, tmp_path: Path) -> None:
    put(memory, "/bucket/some/where", every_verdict.files(vault))
    before = tree(tmp_path)
    assert assert_equal("memory://bucket/some/where", vault)["problems"]
    assert tree(tmp_path) == before


def rows(url: str) -> list[tuple[Any, ...]]:
    """Every derived row of a workspace's index in memory, but for what machines differ in."""
    with opened(url) as place, indexed(place, NOW) as database:
        return canonical_dump(database)


def test_an_index_in_memory_has_the_same_rows(vault: Path, memory: Any) -> None:
    put(memory, "/bucket/where", every_verdict.files(vault))
    before = tree(vault), tree(Path(os.environ["SIGNET_STATE"]))
    there, here = rows("memory://bucket/where"), rows(str(vault))
    assert there == here
    assert {row[0] for row in here} > {"memory_artifacts", "texts", "garden_files"}
    assert (tree(vault), tree(Path(os.environ["SIGNET_STATE"]))) == before


def test_an_archive_gives_the_same(linked: Path, memory: Any, tmp_path: Path) -> None:
    archive = every_verdict.zipped(linked, tmp_path / "ci artifact.zip", "a folder/inside")
    found = assert_equal(f"zip://a folder/inside::{archive}", linked)
    assert "it is a symlink" in {one["message"] for one in found["problems"]}
    memory.pipe_file("/ci/run.zip", archive.read_bytes())
    assert document("zip://a folder/inside::memory://ci/run.zip") == found


def test_a_repository_gives_the_same(linked: Path, tmp_path: Path) -> None:
    repository = every_verdict.committed(linked, tmp_path / "repo")
    assert_equal(f"git://{repository}", linked)
    (repository / "MEMORY.md").write_bytes(b"not committed")
    found = assert_equal(f"git://{repository}:main@", linked)
    assert "it is a symlink" in {one["message"] for one in found["problems"]}


# ── archives and repositories that lie ──


def test_names_that_would_leave_an_archive_are_none(small: Path, tmp_path: Path) -> None:
    archive = every_verdict.zipped(small, tmp_path / "it.zip")
    with zipfile.ZipFile(archive, "a") as more:
        for name in ("../outside.md", "/etc/passwd", "memory/../../a.md", "memory//b.md", "memory/./c.md", "//x"):
            more.writestr(name, b"strange")
    assert_equal(f"zip://::{archive}", small)
    with opened(f"zip://::{archive}") as place:
        assert place.vault is not None
        assert "memory" in files.listing(place.vault, "", "")
        assert files.listing(place.vault, "..", "") == []
        assert files.read(place.vault, "../outside.md", 1 << 20).code == "path-escape"  # type: ignore[union-attr]


def test_of_an_archive_no_more_is_unpacked_than_allowed(small: Path, tmp_path: Path) -> None:
    name, _ = made.summary(session_id="0195d7a2-6f00-7cc0-8a44-0000000000aa")
    (small / "signet-sync.toml").write_text("[reconcile]\nmax_file_bytes = 100000\n")
    with (small / "memory" / name).open("wb") as file:
        file.truncate(200 << 20)
    archive = every_verdict.zipped(small, tmp_path / "bomb.zip")
    assert archive.stat().st_size < 1 << 20
    assert_equal(f"zip://::{archive}", small)
    # An entry that holds more than it states.
    raw = archive.read_bytes()
    stated, real = struct.pack("<I", 200 << 20), struct.pack("<I", 50)
    assert raw.count(stated) == 2
    archive.write_bytes(raw.replace(stated, real))
    found = {path: (code, message) for path, _, code, message in document(f"zip://::{archive}")["table"]}
    assert found[f"memory/{name}"] == ("unreadable", "reading failed: BadZipFile")


def test_what_is_damaged_or_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "no.zip").write_bytes(b"no archive")
    os.mkfifo(tmp_path / "pipe.zip")
    for url in (*(f"zip://::{tmp_path}/{name}" for name in ("no.zip", "pipe.zip", "gone.zip")), f"git://{tmp_path}/no"):
        with pytest.raises(Unreachable) as told:
            document(url)
        assert told.value.path == url and told.value.hint
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    for url in (f"zip://not/there::{tmp_path}/empty.zip", "memory://no/where", f"{tmp_path}/no/where"):
        with pytest.raises(WorkspaceError, match="does not exist"):
            document(url)
    with pytest.raises(UsageError, match="no way to read"):
        document("nonsense://x")


def test_a_repository_that_points_elsewhere_is_refused(small: Path, tmp_path: Path) -> None:
    repository = every_verdict.committed(small, tmp_path / "repo")
    for url in (f"git://{repository}:nowhere@", f"git://{repository}:{'0' * 40}@"):
        with pytest.raises(SignetSyncError):
            document(url)
    (repository / ".git/objects/info").mkdir(exist_ok=True)
    (repository / ".git/objects/info/alternates").write_text("/somewhere/objects\n")
    with pytest.raises(UsageError, match="points elsewhere"):
        document(f"git://{repository}")
    (repository / ".git").rename(tmp_path / "bare.git")
    with pytest.raises(UsageError, match="points elsewhere"):
        document(f"git://{tmp_path}/bare.git")
    (tmp_path / "bare.git/objects/info/alternates").unlink()
    assert_equal(f"git://{tmp_path}/bare.git", small)


def test_a_submodule_and_a_file_mode(small: Path, tmp_path: Path) -> None:
    """A submodule is a folder, as in a checkout; an executable file is one."""
    place = every_verdict.committed(small, tmp_path / "repo")
    other, _ = made.summary(session_id="0195d7a2-6f00-7cc0-8a44-0000000000aa")
    git = ["git", "-C", str(place), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    module = f"160000,{'1' * 40},memory/{other}"
    for words in (
        ["update-index", "--chmod=+x", f"memory/{NAME}"],
        ["update-index", "--add", "--cacheinfo", module],
        ["commit", "-qm", "more"],
    ):
        subprocess.run([*git, *words], check=True)
    (small / "memory" / other).mkdir()
    assert_equal(f"git://{place}", small)


# ── stores that change or do not answer ──


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # ftplib leaves a socket that was refused
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_secret_of_a_url_is_shown() -> None:
    for url, seen in (
        ("s3://bucket/a", "s3://bucket/a"),
        ("https://host/a?sig=abc&x=1#b", "https://host/a#b"),
        ("zip://in::https://me:pw@host/a.zip?token=x", "zip://in::https://host/a.zip"),
        ("ftp://a:p@ss@host/x", "ftp://host/x"),
    ):
        assert shown(url) == seen
    with pytest.raises(SignetSyncError) as told:
        document("ftp://user:hush@127.0.0.1:1/x")
    assert "hush" not in f"{told.value} {told.value.path} {told.value.hint}"


def test_a_file_whose_size_changed_is_left_for_later(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    put(memory, "/a", {f"memory/{name}": raw for name, raw in made.session().items()})
    usual = type(memory).cat_file

    def shorter(self: Any, path: str, *limits: Any) -> bytes:
        raw: bytes = usual(self, path, *limits)
        return raw[:-1] if path.endswith(NAME) else raw

    monkeypatch.setattr(type(memory), "cat_file", shorter)
    judged = {path for path, *_ in document("memory://a")["table"]}
    assert judged == {f"memory/{name}" for name in made.session()} - {f"memory/{NAME}"}
    with opened("memory://a") as place:
        assert files.read(place.vault or "", f"memory/{NAME}", 1 << 20).code == "unsettled"  # type: ignore[union-attr]


def test_what_is_behind_a_link_is_not_taken_for_missing(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name, raw = made.summary(manifest_path="elsewhere/a.md")
    put(memory, "/v", {f"memory/{name}": raw, "elsewhere/a.md": b"there"})
    assert not document("memory://v")["notes"]
    usual = type(memory).ls

    def failing(self: Any, path: str, **given: Any) -> Any:
        if path.endswith("elsewhere"):
            raise ConnectionError("token-of-mine")
        return usual(self, path, **given)

    monkeypatch.setattr(type(memory), "ls", failing)
    with pytest.raises(Unreachable):
        document("memory://v")


def test_files_are_asked_for_together_where_a_store_can(
    vault: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(memory, "/v", every_verdict.files(vault))
    asked: list[int] = []
    usual = type(memory).cat_ranges

    def counting(self: Any, paths: list[str], *limits: Any, **given: Any) -> Any:
        asked.append(len(paths))
        return usual(self, paths, *limits, **given)

    monkeypatch.setattr(type(memory), "cat_ranges", counting)
    monkeypatch.setattr(type(memory), "async_impl", True)
    assert_equal("memory://v", vault)
    assert max(asked) == 64


def test_the_current_repository_is_not_asked(memory: Any, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace elsewhere has no repository around it, least of all that of the folder in which the command runs."""
    subprocess.run(["git", "init", "-q", str(small)], check=True)
    (small / ".gitignore").write_text("*\n")
    (small / "memory:/v").mkdir(parents=True)  # where the address would lead, were it a path
    name, raw = made.summary(manifest_path="memory/2026-01-01T00-00-00.000Z--aaaaaaaaaaaaaaaa--manifest.md")
    put(memory, "/v", {f"memory/{name}": raw})
    monkeypatch.chdir(small)
    with opened("memory://v") as place:
        checked = check.check(place.name, vault=place.vault, now_us=NOW)
        assert [one["code"] for one in checked.notes] == ["link-broken"]
        assert not checked.excused


_NAMES = st.one_of(
    st.sampled_from([*made.session(), "MEMORY.md", made.tombstone()[0], "a.md", "tombstones", "\x07.md", "ü"]),
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="/\0"), min_size=1, max_size=12),
).filter(lambda name: name not in (".", "..", ".git") and len(name.encode()) < 200)
_BYTES = st.one_of(st.sampled_from([RAW, RAW[:-3], made.tombstone()[1], b""]), st.binary(max_size=60))
_FOLDERS = st.sampled_from(
    ["memory", "memory", "memory/tombstones", "", "agents/a", "entities/user/mira--u-abcdefghijkl", "agents"]
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(_FOLDERS, _NAMES, _BYTES), min_size=1, max_size=12))
def test_any_vault_gives_the_same(
    memory: Any, tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, str, bytes]]
) -> None:
    root = tmp_path_factory.mktemp("any")
    for where, name, raw in entries:
        try:
            (root / where).mkdir(parents=True, exist_ok=True)
            (root / where / name).write_bytes(raw)
        except OSError:
            continue
    memory.store.clear()
    memory.pseudo_dirs[:] = [""]
    found = every_verdict.files(root)
    put(memory, "/v", found)
    if found:
        for where, folders, _ in os.walk(root):  # an object store has no empty folders
            for name in folders:
                memory.makedirs(f"/v/{os.path.relpath(os.path.join(where, name), root)}", exist_ok=True)
        assert_equal("memory://v", root)
        assert stat.S_ISDIR(root.stat().st_mode)
