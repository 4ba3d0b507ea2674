"""What names a workspace; any place gives the same verdicts, or lies, changes, leaves itself or does not answer."""

from __future__ import annotations

import json
import os
import shutil
import struct
import zipfile
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import every_verdict
import pytest
from workbench import tree

from signet_sync.errors import SignetSyncError, Unreachable, UsageError, WorkspaceError
from signet_sync.fleet.places import mask_url, matches, open_place
from signet_sync.formats.timestamps import parse_instant
from signet_sync.integrity import check

NOW = parse_instant("2026-03-30T00:00:00.000Z") or 0
NAME, RAW = made.summary()


def document(url: str) -> dict[str, Any]:
    """What `check --json` says of a workspace, but for its address."""
    with open_place(url) as place:
        place.fetch()
        checked = check.check(place.root, now_us=NOW)
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


def test_every_place_gives_the_same(vault: Path, linked: Path, memory: Any, tmp_path: Path) -> None:
    verdicts = {verdict for _, verdict, _, _ in document(str(vault))["table"]}
    assert verdicts == {"indexed", "invalid", "ignored", "tombstoned", "tombstone"}
    put(memory, "/bucket/some/where", every_verdict.files(vault))
    before = tree(tmp_path)
    assert assert_equal("memory://bucket/some/where", vault)["problems"]
    assert tree(tmp_path) == before
    archive = every_verdict.zipped(linked, tmp_path / "ci artifact.zip", "a folder/inside")
    found = assert_equal(f"zip://a folder/inside::{archive}", linked)
    assert "it is a symlink" in {one["message"] for one in found["problems"]}
    memory.pipe_file("/ci/run.zip", archive.read_bytes())
    assert document("zip://a folder/inside::memory://ci/run.zip") == found
    repository = every_verdict.committed(linked, tmp_path / "repo")
    (repository / "MEMORY.md").write_bytes(b"not committed")
    assert_equal(f"git://{repository}", linked)
    assert_equal(f"git://{repository}:main@", linked)


def test_an_archive_that_lies_gives_nothing_more(small: Path, tmp_path: Path) -> None:
    name, _ = made.summary(session_id="0195d7a2-6f00-7cc0-8a44-0000000000aa")
    (small / "signet-sync.toml").write_text("[reconcile]\nmax_file_bytes = 100000\n")
    with (small / "memory" / name).open("wb") as file:
        file.truncate(200 << 20)
    archive = every_verdict.zipped(small, tmp_path / "bomb.zip")
    with zipfile.ZipFile(archive, "a") as more:
        for strange in ("../outside.md", "/etc/passwd", "memory/../../a.md", "memory//b.md", "memory/./c.md", "//x"):
            more.writestr(strange, b"strange")
    assert archive.stat().st_size < 1 << 20
    assert_equal(f"zip://::{archive}", small)
    raw = archive.read_bytes()  # an entry that holds more than it states
    archive.write_bytes(raw.replace(struct.pack("<I", 200 << 20), struct.pack("<I", 50)))
    with pytest.raises(Unreachable):
        document(f"zip://::{archive}")


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # ftplib leaves a socket that was refused
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_is_damaged_missing_or_elsewhere_is_named(small: Path, tmp_path: Path) -> None:
    (tmp_path / "no.zip").write_bytes(b"no archive")
    os.mkfifo(tmp_path / "pipe.zip")
    repository = every_verdict.committed(small, tmp_path / "repo")
    for url in (
        *(f"zip://::{tmp_path}/{name}" for name in ("no.zip", "pipe.zip", "gone.zip")),
        *(f"git://{repository}:{ref}@" for ref in ("nowhere", "0" * 40)),
        "ftp://user:hush@127.0.0.1:1/x",
    ):
        with pytest.raises(Unreachable) as told:
            document(url)
        assert told.value.hint and "hush" not in f"{told.value} {told.value.path} {told.value.hint}"
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    for url in (f"zip://no::{tmp_path}/empty.zip", "memory://no/where", f"{tmp_path}/no", f"git://{tmp_path}/no"):
        with pytest.raises(WorkspaceError, match="does not exist"):
            document(url)
    with pytest.raises(UsageError, match="no way to read"):
        document("nonsense://x")
    (repository / ".git/objects/info").mkdir(exist_ok=True)
    (repository / ".git/objects/info/alternates").write_text("/somewhere/objects\n")
    with pytest.raises(UsageError, match="points elsewhere"):
        document(f"git://{repository}")
    for url, seen in (
        ("https://host/a?sig=abc&x=1#b", "https://host/a#b"),
        ("zip://in::https://me:pw@host/a.zip?token=x", "zip://in::https://host/a.zip"),
    ):
        assert mask_url(url) == seen


def test_a_store_that_changes_or_stops_answering(vault: Path, memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    put(memory, "/a", {f"memory/{name}": raw for name, raw in made.session().items()})
    cat = type(memory).cat_file

    def broken(*_: Any) -> bytes:
        raise ConnectionError("broken")

    for told in (broken, lambda s, path, *given: cat(s, path, *given)[: -1 if path.endswith(NAME) else None]):
        with pytest.MonkeyPatch.context() as store:
            store.setattr(type(memory), "cat_file", told)
            with pytest.raises(Unreachable):  # nothing that was not seen is taken for damaged or missing
                document("memory://a")
    put(memory, "/v", every_verdict.files(vault))
    ranges, together = type(memory).cat_ranges, list[int]()

    def counting(self: Any, paths: list[str], *given: Any, **more: Any) -> Any:
        together.append(len(paths))
        return ranges(self, paths, *given, **more)

    monkeypatch.setattr(type(memory), "cat_ranges", counting)
    assert_equal("memory://v", vault)
    assert 50 < max(together) <= 64


def test_the_current_repository_is_not_asked(memory: Any, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace elsewhere has no repository around it, least of all that of the folder in which the command runs."""
    every_verdict.committed(small, small.parent / "around")
    (small.parent / "around/.gitignore").write_text("*\n")
    put(memory, "/v", {f"memory/{NAME}": made.summary(manifest_path="memory/gone--manifest.md")[1]})
    monkeypatch.chdir(small.parent / "around")
    with open_place("memory://v") as place:
        place.fetch()
        checked = check.check(place.root, now_us=NOW)
        assert [one["code"] for one in checked.notes] == ["link-broken"] and not checked.excused
    with pytest.raises(SignetSyncError):
        document("s3://no-bucket/at/all")


# ── what names workspaces ──


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three workspaces, a folder that is none, links, a folder with a name like a glob; the current one is above."""
    for name in ("ada", "ben", "team/cay", "[x]"):
        (tmp_path / "agents" / name / "memory").mkdir(parents=True)
    (tmp_path / "agents/notes").mkdir()
    (tmp_path / "agents/file").write_text("")
    (tmp_path / "home/.agents/memory").mkdir(parents=True)
    (tmp_path / "agents/eve").symlink_to(tmp_path / "home/.agents")
    (tmp_path / "link").symlink_to(tmp_path / "agents/ada")
    (tmp_path / "all").symlink_to(tmp_path / "agents")
    (tmp_path / "list").write_text("# agents\n\nagents/ada\n  agents/b*  \ns3://bucket/cay\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("agents/ada", "ada"),
        ("agents/ada/ agents/../agents/ada link", "ada"),
        ("agents/[ab]* agents/team/ca?", "ada ben team/cay"),
        ("agents/*", "[x] ada ben eve:damaged notes team"),
        ("all/[ab]*", "ada ben"),
        ("agents/[x]", "[x]"),
        ("agents/notes agents/gone", "gone notes"),  # a worker says what is wrong with it
        ("agents/z*", "z*:vanished"),
        ("@list", "ada ben s3://bucket/cay"),
        ("S3://bucket/ada/ s3://bucket/ada", "s3://bucket/ada"),
        ("git:///srv/lantern:main@agents", "git:///srv/lantern:main@agents"),
        ("memory://none/*", "memory://none/*:vanished"),
    ],
)
def test_what_targets_match(fleet: Path, named: str, expected: str) -> None:
    above = f"{fleet}/agents/"
    found = {name.removeprefix(above): state for name, (state, _) in matches(named.split()).items()}
    assert [f"{name}:{state}" if state else name for name, state in found.items()] == expected.split()


@pytest.mark.parametrize(
    "target",
    [
        "", "s3://", "git:///srv/*", "zip:///srv/*.zip", "nosuch://bucket/*", "s3://key:hunter2@bucket/ada",
        "sftp://ada:hunter2@example.org/srv", "zip://ada::https://hunter2@example.org/build.zip",
    ],
)  # fmt: skip
def test_what_is_no_target(fleet: Path, target: str) -> None:
    with pytest.raises(UsageError) as raised:
        matches([target])
    assert raised.value.hint and "hunter2" not in f"{raised.value.message} {raised.value.path} {raised.value.hint}"


def test_globs_of_stores(memory: Any) -> None:
    for name in ("globbed/ada/memory/a.md", "globbed/notes/c.md", "globbed/d.md"):
        memory.pipe_file(name, b"")
    assert list(matches(["memory://globbed/*"])) == ["memory://globbed/ada", "memory://globbed/notes"]
    found = matches(["ftp://127.0.0.1:1/srv/*", "memory://globbed/a*"])
    assert found["ftp://127.0.0.1:1/srv/*"][0] == "unreachable" and found["memory://globbed/ada"] == ("", "")
