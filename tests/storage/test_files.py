"""The door to files: nothing outside the workspace, nothing that blocks, and never a torn file whatever fails when."""

import ctypes
import errno
import os
import socket
import stat
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from signet_sync.errors import PathEscape, WorkspaceError
from signet_sync.formats.snapshot import Trouble
from signet_sync.storage import files, writing

LINUX = sys.platform == "linux"
LIMIT = 1 << 20
OLD, NEW, THEIRS = b"old\n" * 9, b"new\n" * 7, b"typed by a person\n"
NAME = "memory/2026-03-28T10-00-00.000Z--abcdefghijklmnop--summary.md"
PAGE = "MEMORY.md"
PROJECT = str(Path(files.__file__).parents[2])


@pytest.fixture
def root(tmp_path):
    vault = tmp_path / "vault"
    (vault / "memory").mkdir(parents=True)
    return vault


def put(root, path, data=OLD):
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return target


def temporaries(root):
    return [str(p.relative_to(root)) for p in root.rglob("*.tmp")]


def child(script, *arguments, **options):
    """A Python process on this project; given no `input`, it is left running."""
    command = [*options.pop("before", ()), sys.executable, "-c", script, *map(str, arguments)]
    environ = {**os.environ, "PYTHONPATH": PROJECT, **options.pop("environ", {})}
    return subprocess.Popen(command, env=environ, stdin=-1, stdout=-1, stderr=-1, text=True, **options)


def failing(patch, name, nth, code):
    """Makes the n-th call of a function of `os` fail; gives a list that is empty until it has."""
    real, calls, failed = getattr(os, name), count(1), []

    def sometimes(*arguments, **options):
        if next(calls) == nth:
            failed.append(nth)
            raise OSError(code, os.strerror(code))
        return real(*arguments, **options)

    patch.setattr(os, name, sometimes)
    return failed


def no_rename(patch):
    """A system or file system without renameat2's flags."""

    def refuse(*_):
        ctypes.set_errno(errno.EINVAL)
        return -1

    patch.setattr(writing, "_renameat2", lambda: refuse)


def no_links(patch):
    """A file system without hard links."""
    failing_always(patch, "link", errno.EPERM)


def failing_always(patch, name, code):
    def always(*_, **__):
        raise OSError(code, os.strerror(code))

    patch.setattr(os, name, always)


# --- the gate -------------------------------------------------------------------------------------------------------

OUTSIDE = [
    "", "/etc/passwd", "memory/../../secret", "memory/..", "./MEMORY.md", "memory//a.md", "a\0b", "memory/\ud800.md",
]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_what_could_leave_the_workspace_is_refused_everywhere(root, path):
    (root.parent / "secret").write_bytes(b"secret")
    assert files.read(str(root), path, LIMIT) == Trouble("path-escape", "the path leaves the workspace")
    assert files.status_of(str(root), path) is None
    for refused in (
        lambda: writing.create_once(str(root), path, NEW),
        lambda: writing.replace(str(root), path, NEW, None),
        lambda: writing.unlink(str(root), path),
    ):
        with pytest.raises(PathEscape):
            refused()
    assert (root.parent / "secret").read_bytes() == b"secret"
    assert sorted(p.name for p in root.iterdir()) == ["memory"]


def test_no_folder_on_the_way_may_be_a_link(root):
    outside = root.parent / "outside"
    put(outside, "a.md")
    (root / "agents").symlink_to(outside)
    assert files.read(str(root), "agents/a.md", LIMIT).code == "path-escape"
    assert files.status_of(str(root), "agents/a.md") is None
    assert files.list_names(str(root), "agents", "") == []
    for write in (writing.create_once, lambda *a: writing.replace(*a, None)):
        with pytest.raises(PathEscape, match="symlink"):
            write(str(root), "agents/b.md", NEW)
    with pytest.raises(PathEscape):
        writing.unlink(str(root), "agents/a.md")
    assert os.listdir(outside) == ["a.md"]


@pytest.mark.parametrize("target", ["/etc/passwd", "memory/b.md", "nowhere"])
def test_a_link_at_the_end_is_not_followed(root, target):
    put(root, "memory/b.md")
    (root / "memory/a.md").symlink_to(target if target.startswith("/") else root / target)
    assert files.read(str(root), "memory/a.md", LIMIT) == Trouble("not-a-file", "it is a symlink")
    assert stat.S_ISLNK(files.status_of(str(root), "memory/a.md").st_mode)
    with pytest.raises(WorkspaceError, match="regular"):
        writing.replace(str(root), "memory/a.md", NEW, None)
    with pytest.raises(FileExistsError):
        writing.create_once(str(root), "memory/a.md", NEW)
    assert (root / "memory/b.md").read_bytes() == OLD and temporaries(root) == []


def test_pipes_sockets_and_folders_never_block(root, monkeypatch):
    monkeypatch.chdir(root / "memory")
    os.mkfifo("pipe.md")
    os.mkdir("folder.md")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.md")
        kinds = {"pipe.md": "a named pipe", "folder.md": "a folder", "socket.md": "not a regular file"}
        for name, kind in kinds.items():
            found = files.read(str(root), f"memory/{name}", LIMIT)
            assert (found.code, found.message) == ("not-a-file", f"it is {kind}"), name
            with pytest.raises(WorkspaceError):
                writing.replace(str(root), f"memory/{name}", NEW, None)
    with pytest.raises(WorkspaceError, match="there is a file where a folder should be"):
        writing.create_once(str(root), "memory/pipe.md/a.md", NEW)


def growing(patch, path, times):
    """Somebody appends to the file after each of the first reads."""
    real, left = os.read, count(1)

    def read(descriptor, size):
        data = real(descriptor, size)
        if data and next(left) <= times:
            with open(path, "ab") as handle:
                handle.write(b"more")
        return data

    patch.setattr(os, "read", read)


def test_a_file_that_keeps_growing_is_unsettled(root, monkeypatch):
    path = put(root, "memory/a.md")
    growing(monkeypatch, path, 99)
    found = files.read(str(root), "memory/a.md", LIMIT)
    assert found.code == "unsettled" and found.signature == files.signature_of(os.stat(path))


@pytest.mark.parametrize("name", ["open", "fstat", "read"])
@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE, errno.ESTALE, errno.EACCES])
def test_a_failing_disk_is_never_an_absent_file(root, monkeypatch, name, code):
    put(root, "memory/a.md")
    for nth in count(1):
        with monkeypatch.context() as patch:
            failed = failing(patch, name, nth, code)
            found = files.read(str(root), "memory/a.md", LIMIT)
        if not failed:
            break
        assert found.code == "unreadable" and os.strerror(code) in found.message
    assert nth > 1 and found.raw == OLD


# --- publishing once ------------------------------------------------------------------------------------------------


SYSTEMS = {
    "links": lambda patch: None,
    "no links": no_links,
    "neither": lambda patch: (no_links(patch), no_rename(patch)),
    "no swap": no_rename,
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_taken_name_keeps_its_file(root, monkeypatch, system):
    SYSTEMS[system](monkeypatch)
    writing.create_once(str(root), NAME, OLD)
    before = os.stat(root / NAME)
    with pytest.raises(FileExistsError):
        writing.create_once(str(root), NAME, NEW)
    assert (root / NAME).read_bytes() == OLD
    assert files.signature_of(os.stat(root / NAME)) == files.signature_of(before)
    assert stat.S_IMODE(before.st_mode) == 0o600 and temporaries(root) == []


# --- replacing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_replace_creates_replaces_and_keeps_the_mode(root, monkeypatch, system):
    SYSTEMS[system](monkeypatch)
    assert writing.replace(str(root), PAGE, OLD, None).displaced is None
    os.chmod(root / PAGE, 0o664)
    before = os.umask(0o077)
    try:
        replaced = writing.replace(str(root), PAGE, NEW, OLD)
    finally:
        os.umask(before)
    assert replaced == writing.Replaced(files.signature_of(os.stat(root / PAGE)), None)
    assert (root / PAGE).read_bytes() == NEW and stat.S_IMODE(os.stat(root / PAGE).st_mode) == 0o664
    assert temporaries(root) == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_save_in_between_is_put_back_and_told(root, monkeypatch, system):
    SYSTEMS[system](monkeypatch)
    put(root, PAGE, THEIRS)
    before = os.stat(root / PAGE)
    replaced = writing.replace(str(root), PAGE, NEW, OLD)
    assert replaced.displaced == THEIRS and (root / PAGE).read_bytes() == THEIRS
    assert replaced.signature == files.signature_of(os.stat(root / PAGE))
    assert os.stat(root / PAGE).st_ino == before.st_ino and temporaries(root) == []


@pytest.mark.parametrize("system", SYSTEMS)
def test_without_an_expectation_anything_is_displaced(root, monkeypatch, system):
    SYSTEMS[system](monkeypatch)
    put(root, PAGE, THEIRS)
    assert writing.replace(str(root), PAGE, NEW, None).displaced == THEIRS
    assert (root / PAGE).read_bytes() == NEW and temporaries(root) == []


def on_fsync(patch, nth, act):
    """Somebody does something just after our n-th fsync."""
    real, calls = os.fsync, count(1)

    def fsync(descriptor):
        real(descriptor)
        if next(calls) == nth:
            act()

    patch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("how", ["in place", "by rename", "removed", "new file"])
def test_an_editor_that_saves_while_we_write_loses_nothing(root, monkeypatch, how):
    page = root / PAGE
    writing.prepare(str(root))
    if how != "new file":
        put(root, PAGE)

    def save():
        if how == "removed":
            return page.unlink()
        if how == "by rename":
            put(root, "editor.swp", THEIRS)
            return os.replace(root / "editor.swp", page)
        return page.write_bytes(THEIRS)

    on_fsync(monkeypatch, 1, save)
    replaced = writing.replace(str(root), PAGE, NEW, None if how == "new file" else OLD)
    if how == "removed":
        assert (replaced.displaced, page.read_bytes()) == (None, NEW)
    elif how == "new file":
        assert (replaced.displaced, page.read_bytes()) == (THEIRS, NEW)
    else:
        assert (replaced.displaced, page.read_bytes()) == (THEIRS, THEIRS)
    assert temporaries(root) == []


@pytest.mark.skipif(not LINUX, reason="the second swap is watched through renameat2")
def test_an_editor_that_saves_twice_keeps_the_newest(root, monkeypatch):
    """Once before our swap, and once more between it and the putting back."""
    put(root, PAGE)
    real, saves = writing._rename, [THEIRS, b"newest"]

    def rename(*arguments):
        if saves:
            put(root, "editor.swp", saves.pop(0))
            os.replace(root / "editor.swp", root / PAGE)
        return real(*arguments)

    monkeypatch.setattr(writing, "_rename", rename)
    assert writing.replace(str(root), PAGE, NEW, OLD).displaced == THEIRS
    assert (root / PAGE).read_bytes() == b"newest"
    # Whoever saved the newest may not have seen the one before: it waits to be kept beside the page.
    (held,) = writing.list_displaced(str(root), rest=0.0)
    assert (held.path, held.raw) == (PAGE, THEIRS) and temporaries(root) == [held.place]
    writing.sweep(str(root), rest=0.0)
    assert temporaries(root) == [held.place]


@pytest.mark.parametrize("system", ["links", "no swap"])
def test_a_file_that_is_being_written_is_put_back(root, monkeypatch, system):
    SYSTEMS[system](monkeypatch)
    page = put(root, PAGE)
    with open(page, "ab") as editor:
        real = os.read

        def read(descriptor, size):
            data = real(descriptor, size)
            if data:
                os.write(editor.fileno(), b"x")
            return data

        with monkeypatch.context() as patch:
            patch.setattr(os, "read", read)
            with pytest.raises(WorkspaceError, match="being written"):
                writing.replace(str(root), PAGE, NEW, OLD)
        os.write(editor.fileno(), b"end")
    assert page.read_bytes().startswith(OLD) and page.read_bytes().endswith(b"end")
    assert (b"x" in page.read_bytes()) == (not LINUX)  # a lease tells before anything is read
    assert temporaries(root) == []


def test_a_save_into_the_file_that_we_displaced_and_had_found_final_is_kept(root, monkeypatch):
    put(root, PAGE)
    aside = (root / ".signet/tmp").glob("*-MEMORY.md.tmp")  # where a program writes that was held up in opening it
    monkeypatch.setattr(writing, "sync_descriptor", lambda _: [one.write_bytes(b"late words\n") for one in aside])
    writing.replace(str(root), PAGE, NEW, OLD)
    assert [one.raw for one in writing.list_displaced(str(root), rest=0.0)] == [b"late words\n"]


# --- what fails -----------------------------------------------------------------------------------------------------


FIRST = "agents/ada/MEMORY.md"
WRITES = {
    "create_once": (lambda root: writing.create_once(root, NAME, NEW), NAME, {None, NEW}),
    "replace": (lambda root: writing.replace(root, PAGE, NEW, OLD), PAGE, {OLD, NEW}),
    "replace, new": (lambda root: writing.replace(root, FIRST, NEW, None), FIRST, {None, NEW}),
    "prepare": (writing.prepare, ".signet/.gitignore", {None, b"*\n"}),
}


def content(path):
    return path.read_bytes() if path.exists() else None


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("call", ["open", "write", "fchmod", "fsync", "link", "replace", "mkdir", "stat", "unlink"])
@pytest.mark.parametrize("what", WRITES)
def test_whatever_call_fails_the_file_is_old_or_new(root, monkeypatch, what, call, system):
    act, path, allowed = WRITES[what]
    for nth in count(1):
        vault = root / str(nth)
        vault.mkdir()
        put(vault, PAGE)
        with monkeypatch.context() as patch:
            SYSTEMS[system](patch)
            failed = failing(patch, call, nth, errno.ENOSPC if call in ("write", "mkdir") else errno.EIO)
            try:
                act(str(vault))
            except (OSError, WorkspaceError):
                assert failed
        assert content(vault / path) in allowed, nth
        left = temporaries(vault)
        assert len(left) <= (call in ("unlink", "open")), (nth, left)  # what cannot be looked at stays, too
        for stale in left:
            os.utime(vault / stale, (0, 0))
        writing.sweep(str(vault), rest=0.0)
        assert temporaries(vault) == []
        if not failed:
            break
    assert nth < 40


# --- what a crash leaves --------------------------------------------------------------------------------------------


def dead_pid():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_only_temporaries_of_the_dead_are_swept(root):
    dead, hexes = dead_pid(), "0123456789abcdef" * 2
    swept = [f".signet/tmp/{dead}-{hexes}.tmp"]
    kept = [
        f".signet/tmp/{os.getpid()}-{hexes}.tmp", f".signet/tmp/{dead}-{hexes}.tmp.md", ".signet/tmp/1-short.tmp",
        f"memory/{dead}-{hexes}.tmp", f"memory/.signet-{os.getpid()}-{hexes}.tmp", f".signet/{dead}-{hexes}.tmp",
    ]  # fmt: skip
    for path in swept + kept:
        put(root, path)
    writing.sweep(str(root), rest=writing.REST)
    assert sorted(str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()) == sorted(kept)
