"""The door to the entity ledger: what is added is whole and durable or not there; nobody is written over."""

from __future__ import annotations

import errno
import os
import stat
from itertools import count
from pathlib import Path

import pytest

from signet_sync.entities.event_log import files as event_log_files
from signet_sync.errors import PathEscape, WorkspaceError
from signet_sync.formats.entity_paths import ledger_page

PAGE = ledger_page("default", "2026-11")
FOLDER = "entities/ledger"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    vault = tmp_path / "vault"
    vault.mkdir()
    return vault


def put(root: Path, path: str, data: bytes) -> Path:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return target


def refusal(what, *arguments) -> str:
    with pytest.raises(WorkspaceError) as caught:
        what(*arguments)
    assert caught.value.hint
    return caught.value.code


# ── pages ──


def test_pages_stand_in_the_order_of_their_months_and_are_one_agents(root):
    assert event_log_files.pages(str(root), "default") == []
    months = ("2026-11", "2025-12", "2026-02")
    for month in months:
        put(root, ledger_page("default", month), b"{}\n")
    put(root, ledger_page("scout", "2026-01"), b"{}\n")
    for other in ("2026-13.jsonl", "2026-03.jsonl~", "notes.md", "2026-03.jsonl.tmp"):
        put(root, f"{FOLDER}/{other}", b"no page\n")
    found = event_log_files.pages(str(root), "default")
    assert found == [(month, ledger_page("default", month)) for month in sorted(months)]
    assert event_log_files.pages(str(root), "scout") == [("2026-01", "agents/scout/entities/ledger/2026-01.jsonl")]
    assert event_log_files.pages(str(root), "nobody") == []


def test_a_ledger_that_cannot_be_seen_is_not_an_empty_one(root, monkeypatch):
    put(root, PAGE, b"{}\n")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="Input/output"):
        patch.setattr(os, "listdir", failing(errno.EIO))
        event_log_files.pages(str(root), "default")
    (root / FOLDER).rename(root / "elsewhere")
    (root / FOLDER).symlink_to(root / "elsewhere")
    with pytest.raises(PathEscape):
        event_log_files.pages(str(root), "default")
    (root / FOLDER).unlink()
    put(root, FOLDER, b"a file")
    assert refusal(event_log_files.pages, str(root), "default") == "workspace-unusable"
    with pytest.raises(FileNotFoundError):
        event_log_files.pages(str(root / "unmounted"), "default")


def failing(code):
    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    return fail


def test_a_page_is_read_whole_or_refused(root, monkeypatch):
    assert event_log_files.read(str(root), PAGE) == b""
    put(root, PAGE, b"one\xff\n")
    assert event_log_files.read(str(root), PAGE) == b"one\xff\n"
    monkeypatch.setattr(event_log_files, "LIMIT", 4)
    assert refusal(event_log_files.read, str(root), PAGE) == "too-large"


# ── adding ──


def test_a_page_is_made_with_its_folders_and_grows_at_its_end(root):
    event_log_files.append(str(root), PAGE, "one\n", 0)
    event_log_files.append(str(root), PAGE, "two é\n", 4)
    assert (root / PAGE).read_bytes() == b"one\ntwo \xc3\xa9\n"
    assert stat.S_IMODE((root / PAGE).stat().st_mode) == 0o600
    assert stat.S_IMODE((root / FOLDER).stat().st_mode) == 0o700
    event_log_files.append(str(root), PAGE, "three\n", len("one\ntwo é\n".encode()))
    assert [path.name for path in (root / FOLDER).iterdir()] == ["2026-11.jsonl"]


@pytest.mark.parametrize(("there", "expected"), [(b"one\n", 0), (b"one\n", 3), (b"one\n", 5), (None, 4), (b"", 4)])
def test_where_somebody_else_wrote_nothing_is_added(root, there, expected):
    if there is not None:
        put(root, PAGE, there)
    assert refusal(event_log_files.append, str(root), PAGE, "two\n", expected) == "ledger-changed"
    assert (root / PAGE).read_bytes() == there if there is not None else not (root / PAGE).exists()


def test_a_page_has_an_end(root, monkeypatch):
    monkeypatch.setattr(event_log_files, "LIMIT", 8)
    event_log_files.append(str(root), PAGE, "one\ntwo\n", 0)
    assert refusal(event_log_files.append, str(root), PAGE, "3", 8) == "ledger-full"
    assert (root / PAGE).read_bytes() == b"one\ntwo\n"


def test_what_is_added_is_durable_and_a_page_with_words_has_a_durable_name(root, monkeypatch):
    calls = []

    def noted(name, real):
        def call(handle, *rest):
            calls.append(f"{name} {'folder' if stat.S_ISDIR(os.fstat(handle).st_mode) else 'page'}")
            return real(handle, *rest)

        return call

    (root / FOLDER).mkdir(parents=True)
    for name in ("write", "fsync", "close"):
        monkeypatch.setattr(os, name, noted(name, getattr(os, name)))
    event_log_files.append(str(root), PAGE, "one\n", 0)
    done = [call for call in calls if call != "close folder"]
    assert done == ["fsync folder", "write page", "fsync page", "close page"]
    calls.clear()
    event_log_files.append(str(root), PAGE, "two\n", 4)
    assert [call for call in calls if call != "close folder"] == ["write page", "fsync page", "close page"]


def test_a_page_that_a_crash_left_empty_gets_its_name_made_durable(root, monkeypatch):
    put(root, PAGE, b"")
    synced = []
    real = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda handle: (synced.append(stat.S_ISDIR(os.fstat(handle).st_mode)), real(handle))
    )
    event_log_files.append(str(root), PAGE, "one\n", 0)
    assert synced == [True, False]


@pytest.mark.parametrize("before", [b"", b"one\n"], ids=["a new page", "a page"])
@pytest.mark.parametrize(("name", "nth"), [("write", 1), ("write", 2), ("fsync", 1), ("fsync", 2)])
def test_after_an_error_the_page_is_as_it_was(root, monkeypatch, before, name, nth):
    if before:
        put(root, PAGE, before)
    else:
        (root / FOLDER).mkdir(parents=True)
    real_write, real_fsync, calls = os.write, os.fsync, count(1)

    def trouble():
        if next(calls) == nth:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write(handle, data):
        if name == "write":
            trouble()
        return real_write(handle, data[:3])

    def fsync(handle):
        if name == "fsync":
            trouble()
        real_fsync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        patch.setattr(os, "fsync", fsync)
        if name == "fsync" and nth == 2 and before:  # a page that has words needs one
            event_log_files.append(str(root), PAGE, "two\n", len(before))
            assert (root / PAGE).read_bytes() == b"one\ntwo\n"
            return
        with pytest.raises(OSError, match="No space left"):
            event_log_files.append(str(root), PAGE, "two\n", len(before))
    assert (root / PAGE).read_bytes() == before
    event_log_files.append(str(root), PAGE, "two\n", len(before))
    assert (root / PAGE).read_bytes() == before + b"two\n"


def test_after_an_error_nobody_elses_words_are_cut_off(root, monkeypatch):
    page = put(root, PAGE, b"one\n")

    def meanwhile(_):
        with page.open("ab") as file:
            file.write(b"theirs\n")
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", meanwhile)
    with pytest.raises(OSError, match="Input/output"):
        event_log_files.append(str(root), PAGE, "two\n", 4)
    assert page.read_bytes() == b"one\ntwo\ntheirs\n"


# ── what is no page ──


@pytest.mark.parametrize("there", ["symlink", "folder", "pipe", "pipe that is read"])
def test_what_is_no_page_is_refused_and_left(root, tmp_path, there):
    outside = put(tmp_path, "outside.jsonl", b"")
    target = root / PAGE
    target.parent.mkdir(parents=True)
    reader = None
    if there == "symlink":
        target.symlink_to(outside)
    elif there == "folder":
        target.mkdir()
    else:
        os.mkfifo(target)
        if there == "pipe that is read":
            reader = os.open(target, os.O_RDONLY | os.O_NONBLOCK)
    assert refusal(event_log_files.append, str(root), PAGE, "one\n", 0) == "not-a-file"
    assert refusal(event_log_files.read, str(root), PAGE) == "not-a-file"
    if reader is not None:
        assert os.read(reader, 10) == b""
        os.close(reader)
    assert outside.read_bytes() == b""


def test_a_copy_made_of_hard_links_does_not_grow_with_the_page(root, tmp_path):
    page = put(root, PAGE, b"one\n")
    os.link(page, tmp_path / "copy.jsonl")
    event_log_files.append(str(root), PAGE, "two\n", 4)
    assert page.read_bytes() == b"one\ntwo\n" and (tmp_path / "copy.jsonl").read_bytes() == b"one\n"
    assert refusal(event_log_files.append, str(root), PAGE, "three\n", 4) == "ledger-changed"


# ── written anew ──


def test_a_page_is_written_anew_where_it_is_as_it_was_read(root):
    page = put(root, PAGE, b"one\ntwo\n")
    event_log_files.rewrite(str(root), PAGE, b"one\n", b"one\ntwo\n")
    assert page.read_bytes() == b"one\n"
    assert refusal(event_log_files.rewrite, str(root), PAGE, b"", b"one\ntwo\n") == "ledger-changed"
    assert page.read_bytes() == b"one\n"
    page.unlink()
    assert refusal(event_log_files.rewrite, str(root), PAGE, b"", b"one\n") == "ledger-changed"
    assert not page.exists()
