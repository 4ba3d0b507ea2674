"""Places that lie, change, leave themselves or do not answer: nothing is opened outside, no secret of a URL is told."""

from __future__ import annotations

import gc
import os
import stat
import struct
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import every_verdict
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_fleet_anywhere import NOW, assert_equal, document, put

from signet_sync.errors import SignetSyncError, Unreachable, UsageError, WorkspaceError
from signet_sync.fleet import workspaces
from signet_sync.fleet.places.reader import shown
from signet_sync.integrity import check
from signet_sync.storage import files
from signet_sync.storage.safe_paths import folder

NAME, RAW = made.summary()


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A vault of one session."""
    (tmp_path / "small/memory").mkdir(parents=True)
    for name, raw in made.session().items():
        (tmp_path / "small/memory" / name).write_bytes(raw)
    return tmp_path / "small"


def test_names_that_would_leave_an_archive_are_none(small: Path, tmp_path: Path) -> None:
    archive = every_verdict.zipped(small, tmp_path / "it.zip")
    with zipfile.ZipFile(archive, "a") as more:
        for name in ("../outside.md", "/etc/passwd", "memory/../../a.md", "memory//b.md", "memory/./c.md", "//x"):
            more.writestr(name, b"strange")
    assert_equal(f"zip://{archive}", small)
    with workspaces.opened(f"zip://{archive}") as root:
        assert files.listing(root, "", "") == ["memory"]
        assert files.listing(root, "..", "") == []
        assert files.read(root, "../outside.md", 1 << 20).code == "path-escape"  # type: ignore[union-attr]


def test_of_an_archive_no_more_is_unpacked_than_allowed(small: Path, tmp_path: Path) -> None:
    name, _ = made.summary(session_id="0195d7a2-6f00-7cc0-8a44-0000000000aa")
    (small / "signet-sync.toml").write_text("[reconcile]\nmax_file_bytes = 100000\n")
    with (small / "memory" / name).open("wb") as file:
        file.truncate(200 << 20)
    archive = every_verdict.zipped(small, tmp_path / "bomb.zip")
    assert archive.stat().st_size < 1 << 20
    assert_equal(f"zip://{archive}", small)
    # An entry that holds more than it states.
    raw = archive.read_bytes()
    stated, real = struct.pack("<I", 200 << 20), struct.pack("<I", 50)
    assert raw.count(stated) == 2
    archive.write_bytes(raw.replace(stated, real))
    found = {path: (code, message) for path, _, code, message in document(f"zip://{archive}")["table"]}
    assert found[f"memory/{name}"] == ("unreadable", "reading failed: BadZipFile")


def test_no_archive_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "no.zip").write_bytes(b"no archive")
    os.mkfifo(tmp_path / "pipe.zip")
    for name in ("no.zip", "pipe.zip", "missing.zip"):
        with pytest.raises(Unreachable):
            document(f"zip://{tmp_path}/{name}")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    for url in (f"zip://{tmp_path}/empty.zip!/not/there", "memory://no/where", f"{tmp_path}/no/where"):
        with pytest.raises(WorkspaceError, match="does not exist"):
            document(url)
    with pytest.raises(UsageError, match="no way to read"):
        document("nonsense://x")


def test_a_repository_that_points_elsewhere_is_refused(small: Path, tmp_path: Path) -> None:
    repository = every_verdict.committed(small, tmp_path / "repo")
    for url in (f"git+file://{repository}@nowhere", f"git+file://{repository}@{'0' * 40}"):
        with pytest.raises(SignetSyncError):
            document(url)
    (repository / ".git/objects/info").mkdir(exist_ok=True)
    (repository / ".git/objects/info/alternates").write_text("/somewhere/objects\n")
    with pytest.raises(UsageError, match="points elsewhere"):
        document(f"git+file://{repository}")
    (repository / ".git").rename(tmp_path / "bare.git")
    with pytest.raises(UsageError, match="points elsewhere"):
        document(f"git+file://{tmp_path}/bare.git")
    (tmp_path / "bare.git/objects/info/alternates").unlink()
    assert_equal(f"git+file://{tmp_path}/bare.git", small)


def test_a_submodule_and_a_file_mode(small: Path, tmp_path: Path) -> None:
    """A submodule is a folder, as in a checkout; an executable file is a file."""
    from dulwich.objects import Commit, Tree
    from dulwich.repo import Repo

    other, _ = made.summary(session_id="0195d7a2-6f00-7cc0-8a44-0000000000aa")
    (small / "memory" / other).mkdir()
    place = every_verdict.committed(small, tmp_path / "repo")
    with Repo(str(place)) as repository:
        commit = repository[repository.head()]
        tree = repository[commit.tree]
        inner = repository[tree[b"memory"][1]]
        changed = Tree()
        for path, mode, sha in inner.iteritems():
            changed.add(path, 0o100755, sha)
            assert mode == 0o100644
        changed.add(other.encode(), 0o160000, b"1" * 40)
        changed.add(b"..", 0o100644, inner[NAME.encode()][1])
        top = Tree()
        top.add(b"memory", stat.S_IFDIR, changed.id)
        new = Commit()
        new.tree, new.author, new.committer, new.message = top.id, commit.author, commit.committer, b"more"
        new.author_time = new.commit_time = new.author_timezone = new.commit_timezone = 0
        repository.object_store.add_objects([(one, None) for one in (changed, top, new)])
        repository.refs[b"refs/heads/more"] = new.id
    assert_equal(f"git+file://{place}@more", small)


@contextmanager
def git_server(repository: Path) -> Iterator[str]:
    """Serves a repository over HTTP in this process."""
    from dulwich.repo import Repo
    from dulwich.server import DictBackend
    from dulwich.web import make_server, make_wsgi_chain

    with Repo(str(repository)) as served:
        application = make_wsgi_chain(DictBackend({"/team/repo.git": served}))
        server = make_server("127.0.0.1", 0, application)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}/team/repo.git"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


@pytest.mark.system
def test_a_repository_is_fetched_into_memory(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = every_verdict.committed(small, tmp_path / "repo")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with git_server(place) as address:
        assert_equal(f"git+http://user:token-of-mine@{address}", small)
        assert_equal(f"git+http://{address}@master#", small)
        with pytest.raises(UsageError, match="no ref"):
            document(f"git+http://{address}@other")
        with pytest.raises(Unreachable) as told:
            document(f"git+http://user:token-of-mine@{address}/not/there")
    with pytest.raises(Unreachable) as refused:
        document(f"git+http://user:token-of-mine@{address}")
    for error in (told.value, refused.value):
        assert "token-of-mine" not in f"{error} {error.path} {error.hint}"
    assert not list(temporary.iterdir())


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # ftplib leaves a socket that was refused
def test_no_secret_of_a_url_is_shown(memory: Any) -> None:
    for url, seen in (
        ("s3://bucket/a", "s3://bucket/a"),
        ("git+https://user:tok@host/r.git@main#a", "git+https://host/r.git@main#a"),
        ("https://host/a?sig=abc&x=1#b", "https://host/a#b"),
        ("zip://in::https://me:pw@host/a.zip?token=x", "zip://in::https://host/a.zip"),
        ("git+ssh://git@host/r.git", "git+ssh://host/r.git"),
        ("ftp://a:p@ss@host/x", "ftp://host/x"),
    ):
        assert shown(url) == seen
    with pytest.raises(SignetSyncError) as told:
        document("ftp://user:hush@127.0.0.1:1/x")
    assert "hush" not in f"{told.value} {told.value.path} {told.value.hint}"
    del told
    gc.collect()


def test_a_remote_workspace_is_not_written(memory: Any) -> None:
    put(memory, "/a", {f"memory/{NAME}": RAW})
    with workspaces.opened("memory://a") as root:
        with pytest.raises(WorkspaceError, match="only read"):
            files.create_once(root, "memory/new.md", b"x")
        with pytest.raises(WorkspaceError, match="only read"), folder(root, "memory"):
            pass


def test_a_file_that_never_rests_is_left_for_later(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    put(memory, "/a", {f"memory/{name}": raw for name, raw in made.session().items()})
    usual = type(memory).cat_file

    def changing(self: Any, path: str, **limits: Any) -> bytes:
        raw: bytes = usual(self, path, **limits)
        if path.endswith(NAME):
            memory.pipe_file(path, raw)
        return raw

    monkeypatch.setattr(type(memory), "cat_file", changing)
    judged = {path for path, *_ in document("memory://a")["table"]}
    assert judged == {f"memory/{name}" for name in made.session()} - {f"memory/{NAME}"}
    with workspaces.opened("memory://a") as root:
        assert files.read(root, f"memory/{NAME}", 1 << 20).code == "unsettled"  # type: ignore[union-attr]


_NAMES = st.one_of(
    st.sampled_from([*made.session(), "MEMORY.md", made.tombstone()[0], "a.md", "tombstones", "\x07.md", "ü"]),
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="/\0"), min_size=1, max_size=12),
).filter(lambda name: name not in (".", "..") and len(name.encode()) < 200)
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


def test_the_current_repository_is_not_asked(memory: Any, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote root has no repository around it, least of all that of the folder in which the command runs."""
    subprocess.run(["git", "init", "-q", str(small)], check=True)
    (small / ".gitignore").write_text("*\n")
    (small / "memory:/v").mkdir(parents=True)  # where the address would lead, were it a path
    name, raw = made.summary(manifest_path="memory/2026-01-01T00-00-00.000Z--aaaaaaaaaaaaaaaa--manifest.md")
    put(memory, "/v", {f"memory/{name}": raw})
    monkeypatch.chdir(small)
    with workspaces.opened("memory://v") as root:
        checked = check.check(root, now_us=NOW)
        assert [one["code"] for one in checked.notes] == ["link-broken"]
        assert not checked.excused


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
