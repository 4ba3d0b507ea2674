"""What is on disk, as values: everything odd is named, nothing is opened, and a glance sees what a scan sees."""

import os
import shutil
import socket
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_sync.formats.snapshot import STRANGE_NAME, Snapshot
from signet_sync.storage.files import signature_of
from signet_sync.sync import reading

ARTIFACT = "2026-03-28T10-00-00.000Z--abcdefghijklmnop--summary.md"
STONE = "default--abcdefghijklmnop.md"


@pytest.fixture
def root(tmp_path):
    vault = tmp_path / "vault"
    (vault / "memory" / "tombstones").mkdir(parents=True)
    return vault


@pytest.fixture
def odd_root(root, monkeypatch):
    """A vault with one of everything under `memory/`."""
    memory = root / "memory"
    (memory / ARTIFACT).write_bytes(b"text")
    (memory / "MEMORY.backup-1.md").write_bytes(b"")
    (memory / "caf\u00e9.md").write_bytes(b"composed")
    (memory / "cafe\u0301.md").write_bytes(b"decomposed")
    (memory / "tombstones" / STONE).write_bytes(b"stone")
    (memory / "tombstones" / "folder.md").mkdir()
    (memory / "codex" / "transcripts").mkdir(parents=True)
    (memory / "codex" / "transcripts" / "a.jsonl").write_bytes(b"foreign")
    (memory / "link.md").symlink_to(ARTIFACT)
    (memory / "dangling.md").symlink_to("nowhere")
    os.mkfifo(memory / "pipe.md")
    monkeypatch.chdir(memory)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.md")
        yield root


def signatures(root, *paths):
    return {path: signature_of(os.lstat(root / path)) for path in paths}


def test_nothing_is_opened_and_nothing_blocks(odd_root, monkeypatch):
    opened = []
    real = os.open

    def noted(path, flags, *rest, **options):
        opened.append((path, flags & os.O_DIRECTORY))
        return real(path, flags, *rest, **options)

    monkeypatch.setattr(os, "open", noted)
    reading.scan(str(odd_root))
    assert opened and all(directory for _, directory in opened)
    assert {path for path, _ in opened} == {str(odd_root), "memory", "tombstones"}


@pytest.mark.parametrize("raw", [b"\xff\xfe--summary.md", b"two\nlines.md", b"\x1b[2J.md", b"\xe2\x80\xae.md"])
def test_names_that_are_no_plain_text_are_strange(root, raw):
    try:
        with open(os.fsencode(root) + b"/memory/" + raw, "wb"):
            pass
    except OSError:
        pytest.skip("this file system takes only some names")
    path = os.fsdecode(b"memory/" + raw)
    snapshot = reading.scan(str(root))
    assert snapshot.files == {}
    (shown,) = set(snapshot.odd) - {"memory/tombstones"}
    assert shown.isprintable() and snapshot.odd[shown] == STRANGE_NAME
    assert reading.glance(str(root), [path]).odd == {shown: STRANGE_NAME}


def test_a_root_without_memory_is_missing_ground(tmp_path):
    for look in (reading.scan, lambda root: reading.glance(root, [f"memory/{ARTIFACT}"])):
        snapshot = look(str(tmp_path))
        assert (snapshot.ground, snapshot.files, snapshot.odd) == ("missing", {}, {})
        assert look(str(tmp_path / "unmounted")).ground == "missing"


@pytest.mark.parametrize("instead", ["link", "dangling link", "file", "pipe"])
def test_something_else_in_place_of_memory_is_refused(tmp_path, instead):
    memory = tmp_path / "memory"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / ARTIFACT).write_bytes(b"text")
    if instead == "file":
        memory.write_bytes(b"")
    elif instead == "pipe":
        os.mkfifo(memory)
    else:
        memory.symlink_to("elsewhere" if instead == "link" else "nowhere")
    for snapshot in (reading.scan(str(tmp_path)), reading.glance(str(tmp_path), [f"memory/{ARTIFACT}"])):
        assert (snapshot.ground, snapshot.files, snapshot.odd) == ("refused", {}, {})
        assert ("symlink" if "link" in instead else "there is a file") in snapshot.ground_message


@pytest.mark.parametrize("instead", ["link", "file"])
def test_something_else_in_place_of_tombstones_is_odd_and_not_entered(root, instead):
    (root / "memory/tombstones").rmdir()
    if instead == "file":
        (root / "memory/tombstones").write_bytes(b"")
    else:
        (root / "elsewhere").mkdir()
        (root / "elsewhere" / STONE).write_bytes(b"stone")
        (root / "memory/tombstones").symlink_to(root / "elsewhere")
    snapshot = reading.scan(str(root))
    assert snapshot.ground == "present" and snapshot.files.keys() | snapshot.odd.keys() == {"memory/tombstones"}
    agrees(root, snapshot, ["memory/tombstones", f"memory/tombstones/{STONE}"])


def agrees(root, full, paths):
    """A glance at these paths is the scan, restricted to them."""
    glance = reading.glance(str(root), paths)
    asked = frozenset(paths)
    assert glance == full._replace(
        everything=False,
        asked=asked,
        files={path: value for path, value in full.files.items() if path in asked},
        odd={path: value for path, value in full.odd.items() if path in asked},
    )


OUTSIDE = ["MEMORY.md", "memory", "memory/codex/a.md", "../memory/a.md", "/memory/a.md", "memory/..", "memory/", ""]


@pytest.mark.parametrize("path", [*OUTSIDE, "memory/.", "memory/tombstones/..", "memory/a\0b", "memory/\ud800"])
def test_a_glance_leaves_out_what_is_not_in_the_two_folders(root, path):
    assert reading.glance(str(root), [path]) == Snapshot(False, "present")


ENTRIES = st.dictionaries(
    st.sampled_from([ARTIFACT, "a.md", "b (1).md", f"tombstones/{STONE}", "tombstones/x", "\xfc.md", "n\nl.md"]),
    st.sampled_from(["file", "link", "pipe", "folder"]),
    max_size=7,
)


@given(ENTRIES, st.lists(st.sampled_from([f"memory/{n}" for n in (ARTIFACT, "a.md", "tombstones/x", "none.md")])))
def test_any_vault_is_seen_whole_and_in_part(tmp_path_factory, entries, asked):
    root = tmp_path_factory.getbasetemp() / "any"
    shutil.rmtree(root, ignore_errors=True)
    (root / "memory/tombstones").mkdir(parents=True)
    make = {"file": lambda p: p.write_bytes(b"x"), "link": lambda p: p.symlink_to("/"), "folder": os.mkdir}
    for name, kind in entries.items():
        make.get(kind, os.mkfifo)(root / "memory" / name)
    full = reading.scan(str(root))
    assert len(full.files) + len(full.odd) == len(entries) + 1
    assert all(stat.S_ISREG(os.lstat(root / path).st_mode) for path in full.files)
    agrees(root, full, asked)
