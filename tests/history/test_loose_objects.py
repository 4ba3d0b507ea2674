"""Loose objects of our own repository become one pack; the history is the same before and after, whatever happens."""

import os
import shutil

import pytest
from history_vault import HistoryVault, git

from signet_sync.errors import WorkspaceError
from signet_sync.history.git import objects, packs

pygit2 = pytest.importorskip("pygit2")
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def past(tmp_path):
    """A history of four commits of a folder of 90 files: every object is a file of its own."""
    past = HistoryVault(tmp_path / "vault").begin()
    for number in range(90):
        past.put(f"memory/{number:02}.md", f"{number}\n")
    for number in range(4):
        past.put(f"memory/new{number}.md", f"new {number}\n")
        past.commit(f"commit {number}")
    return past


def loose(past):
    return sorted(path for path in (past.root / ".git/objects").glob("??/*"))


def pack_files(past):
    return sorted((past.root / ".git/objects/pack").glob("*.pack"))


def packed(past):
    with past.opened() as place:
        return packs.pack_loose(str(past.root), objects.ObjectStore(place.git))


def history_of(past):
    return past.git("log", "-p", "--format=raw", "--all")


def test_a_few_objects_stay_as_they_are(past):
    before = loose(past)
    assert packed(past) == 0 and loose(past) == before and pack_files(past) == []


@pytest.mark.parametrize("limit", ["_MANY", "_MUCH"])
def test_many_objects_become_one_pack_that_tells_differences(past, monkeypatch, limit):
    before = history_of(past), len(loose(past))
    monkeypatch.setattr(packs, limit, 50)
    past.put("a.md")
    assert past.commit("the one that is too much").outcome == "committed"
    assert loose(past) == [] and len(pack_files(past)) == 1
    assert history_of(past).endswith(before[0]) and git(past.root, "fsck", "--strict", "--full") == ""
    told = past.git("verify-pack", "-v", pack_files(past)[0])
    assert "chain length" in told
    past.put("b.md")
    past.commit("and on")
    assert past.log()[0].subject == "and on" and past.data("memory/00.md", "HEAD~4") == b"0\n"


def test_a_kill_before_the_loose_ones_go_leaves_them_twice(past, monkeypatch):
    monkeypatch.setattr(packs, "_MANY", 50)
    unlink = packs._unlink
    monkeypatch.setattr(packs, "_unlink", lambda *given: (_ for _ in ()).throw(OSError("killed")))
    with pytest.raises(OSError, match="killed"):
        packed(past)
    assert len(loose(past)) > 90 and len(pack_files(past)) == 1
    monkeypatch.setattr(packs, "_unlink", unlink)
    assert packed(past) > 90 and loose(past) == [] and len(pack_files(past)) == 1
    assert git(past.root, "fsck", "--strict", "--full") == ""


def test_what_a_damaged_pack_holds_stays_loose(past, monkeypatch):
    """Its index names objects that cannot be read in it: the loose ones are the only good ones."""
    saved = {path: path.read_bytes() for path in loose(past)}
    past.git("repack", "-adq")
    (pack,) = pack_files(past)
    pack.chmod(0o600)
    raw = bytearray(pack.read_bytes())
    raw[len(raw) // 3 : len(raw) // 2] = os.urandom(len(raw) // 2 - len(raw) // 3)
    pack.write_bytes(raw)
    for path, content in saved.items():
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_bytes(content)
    monkeypatch.setattr(packs, "_MANY", 50)
    with pytest.raises(WorkspaceError):
        packed(past)
    assert {path: path.read_bytes() for path in loose(past)} == saved


def test_a_person_s_repository_is_not_tidied(tmp_path, monkeypatch):
    past = HistoryVault(tmp_path / "vault", adopt=True)
    git(past.root, "init", "-q")
    monkeypatch.setattr(packs, "_MANY", 1)
    past.put("a.md")
    assert past.commit().outcome == "committed"
    assert len(loose(past)) == 3 and pack_files(past) == []
