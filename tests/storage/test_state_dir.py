"""The state folder: found again wherever the workspace goes, one agent at a time, nothing of it readable by others."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from signet_sync.errors import WorkspaceError
from signet_sync.formats.paths import WORKSPACE_ID
from signet_sync.storage import state_dir, writing

PROJECT = str(Path(state_dir.__file__).parents[2])


@pytest.fixture
def environ(tmp_path):
    return {"SIGNET_STATE": str(tmp_path / "state")}


@pytest.fixture
def root(tmp_path):
    vault = tmp_path / "vault"
    (vault / "memory").mkdir(parents=True)
    return vault


def writer(root):
    """Writes the id as the agent does."""

    def write_id(fresh):
        writing.replace(str(root), WORKSPACE_ID, f"{fresh}\n".encode(), None)

    return write_id


def establish(root, environ):
    folder = state_dir.establish(str(root), writer(root), environ)
    (Path(folder.path) / "telemetry").touch()
    return folder


def refuse(fresh):
    raise OSError(30, "Read-only file system")


def tree(path):
    """Everything below a folder, with bytes and times: equal if nothing was written."""
    return {p: (p.lstat().st_mtime_ns, p.read_bytes() if p.is_file() else None) for p in Path(path).rglob("*")}


# --- where it is ----------------------------------------------------------------------------------------------------


def test_the_base_folder_can_be_moved(monkeypatch, tmp_path):
    assert state_dir.base({"SIGNET_STATE": str(tmp_path), "XDG_STATE_HOME": "/x"}) == str(tmp_path)
    assert state_dir.base({"XDG_STATE_HOME": "/x"}) == "/x/signet-sync"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    expected = state_dir.base({})
    assert expected.startswith(str(tmp_path)) and expected.endswith("signet-sync")
    assert state_dir.base({"XDG_STATE_HOME": "relative"}) == expected
    assert state_dir.base({"SIGNET_STATE": "~/mine"}) == str(tmp_path / "mine")


def test_looking_writes_nothing(root, environ, tmp_path):
    before = tree(tmp_path)
    folder = state_dir.locate(str(root), environ)
    assert state_dir.read_heartbeat(folder) is None and state_dir.run_lock_holder(folder) is False
    assert folder == state_dir.locate(str(root), environ) and folder.key.startswith("path-")
    assert tree(tmp_path) == before


def test_an_id_is_given_once_and_found_again(root, environ):
    folder = establish(root, environ)
    assert (root / WORKSPACE_ID).read_text() == f"{folder.key}\n" and len(folder.key) == 36
    assert state_dir.establish(str(root), refuse, environ) == folder == state_dir.locate(str(root), environ)
    assert json.loads((Path(folder.path) / "workspace.json").read_text()) == {"path": str(root)}


def test_a_workspace_is_known_through_a_link(root, environ, tmp_path):
    folder = establish(root, environ)
    (tmp_path / "link").symlink_to(root)
    assert state_dir.locate(str(tmp_path / "link"), environ) == folder == establish(tmp_path / "link", environ)


def test_a_moved_workspace_keeps_its_state(root, environ, tmp_path):
    folder = establish(root, environ)
    moved = root.rename(tmp_path / "moved")
    assert state_dir.locate(str(moved), environ) == folder == state_dir.establish(str(moved), refuse, environ)
    assert json.loads((Path(folder.path) / "workspace.json").read_text()) == {"path": str(moved)}
    again = moved.rename(tmp_path / "again")
    assert state_dir.establish(str(again), refuse, environ) == folder


def test_a_copy_gets_an_id_of_its_own(root, environ, tmp_path):
    folder = establish(root, environ)
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    assert state_dir.locate(str(copy), environ).key.startswith("path-")
    copied = establish(copy, environ)
    assert copied.key != folder.key and (copy / WORKSPACE_ID).read_text().strip() == copied.key
    assert establish(root, environ) == folder == state_dir.locate(str(root), environ)
    assert establish(copy, environ) == copied == state_dir.locate(str(copy), environ)


def test_state_under_the_path_moves_along_when_an_id_is_given(root, environ):
    """An `--index-only` run writes no id: what it gathered is not gathered again."""
    keyed = state_dir.locate(str(root), environ)
    state_dir.write_heartbeat(keyed, {"phase": "indexed"})
    folder = establish(root, environ)
    assert folder.key != keyed.key and not os.path.exists(keyed.path)
    assert state_dir.read_heartbeat(folder)["phase"] == "indexed"


def test_a_root_that_cannot_be_written_keeps_its_path_as_key(root, environ):
    folder = state_dir.establish(str(root), refuse, environ)
    assert folder == state_dir.locate(str(root), environ) and folder.key.startswith("path-")
    assert not (root / ".signet").exists()


@pytest.mark.parametrize("lost", [".signet", ".signet/workspace-id"])
def test_a_lost_id_is_written_again_while_memory_is_there(root, environ, lost):
    folder = establish(root, environ)
    shutil.rmtree(root / lost) if (root / lost).is_dir() else (root / lost).unlink()
    assert state_dir.locate(str(root), environ) == folder
    assert establish(root, environ) == folder
    assert (root / WORKSPACE_ID).read_text().strip() == folder.key


def test_an_unmounted_root_is_not_written_and_not_forgotten(root, environ, tmp_path):
    """Neither id nor memory/: a mount point without its disk. The state waits for it."""
    folder = establish(root, environ)
    elsewhere = root.rename(tmp_path / "disk")
    root.mkdir()
    before = tree(tmp_path)
    assert state_dir.establish(str(root), writer(root), environ) == folder == state_dir.locate(str(root), environ)
    assert tree(tmp_path) == before
    root.rmdir()
    elsewhere.rename(root)
    assert state_dir.establish(str(root), refuse, environ) == folder


@pytest.mark.parametrize("text", [b"", b"../../../../etc/passwd-------------------", b"\xff" * 36, b"0" * 300])
def test_a_damaged_id_leads_nowhere(root, environ, text):
    (root / ".signet").mkdir()
    (root / WORKSPACE_ID).write_bytes(text)
    assert state_dir.locate(str(root), environ).key.startswith("path-")
    folder = establish(root, environ)
    assert (root / WORKSPACE_ID).read_text().strip() == folder.key
    assert os.path.dirname(folder.path) == environ["SIGNET_STATE"]


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_an_id_is_a_plain_file(root, environ, tmp_path, kind):
    (root / ".signet").mkdir()
    path = root / WORKSPACE_ID
    if kind == "link":
        (tmp_path / "id").write_text("0" * 36)
        path.symlink_to(tmp_path / "id")
    else:
        os.mkfifo(path) if kind == "pipe" else path.mkdir()
    assert state_dir.establish(str(root), writer(root), environ).key.startswith("path-")


# --- processes ------------------------------------------------------------------------------------------------------


@pytest.fixture
def child(tmp_path):
    """Starts Python with `folder` as a state folder in another process; all are ended."""
    started = []

    def start(folder, script, *arguments):
        lead = "import os, sys, time\nfrom signet_sync.storage import state_dir as state\n"
        lead += "folder = state.StateFolder(sys.argv[1], 'key')\n"
        words = [sys.executable, "-c", lead + script, folder.path, *map(str, arguments)]
        environ = {**os.environ, "PYTHONPATH": PROJECT}
        process = subprocess.Popen(words, env=environ, stdin=-1, stdout=-1, stderr=-1, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


HOLD = """
with state.run_lock(folder):
    state.write_heartbeat(folder, {"phase": "watching"})
    print("held", flush=True)
    sys.stdin.readline()
"""
TRY = """
from signet_sync.errors import AnotherAgent
try:
    with state.run_lock(folder):
        print("held")
except AnotherAgent as error:
    print(f"{error.message}|{error.exit_code}")
"""


def test_a_second_agent_fails_at_once_and_names_the_first(root, environ, child):
    folder = establish(root, environ)
    assert state_dir.run_lock_holder(folder) is False
    first = child(folder, HOLD)
    assert first.stdout.readline() == "held\n"
    assert state_dir.run_lock_holder(folder) is True
    message, code = child(folder, TRY).communicate(timeout=120)[0].strip().split("|")
    assert message == f"another signet-sync agent runs on this workspace (pid {first.pid})"
    assert code == "4"
    first.stdin.write("\n")
    first.stdin.flush()
    first.wait(timeout=120)
    assert state_dir.run_lock_holder(folder) is False
    assert child(folder, TRY).communicate(timeout=120)[0] == "held\n"


def test_two_commands_that_meet_a_new_workspace_give_it_one_id(root, environ, child, tmp_path):
    script = """
from signet_sync.storage import writing
root = sys.argv[2]
def write_id(fresh):
    time.sleep(0.05)
    writing.replace(root, ".signet/workspace-id", fresh.encode() + b"\\n", None)
print("ready", flush=True)
sys.stdin.readline()
print(state.establish(root, write_id, {"SIGNET_STATE": os.path.dirname(folder.path)}).key)
"""
    racers = [child(state_dir.StateFolder(f"{environ['SIGNET_STATE']}/any", "any"), script, root) for _ in range(3)]
    for process in racers:
        assert process.stdout.readline() == "ready\n"
    for process in racers:
        process.stdin.write("\n")
        process.stdin.flush()
    keys = {process.communicate(timeout=120)[0].strip() for process in racers}
    assert keys == {(root / WORKSPACE_ID).read_text().strip()}


def test_operations_under_one_lock_do_not_wait_for_it_and_others_do(root, environ, tmp_path):
    folder = establish(root, environ)
    elsewhere = state_dir.StateFolder(str(tmp_path / "elsewhere"), "key")
    found = []

    def lock(one):
        try:
            with state_dir.workspace_lock(one, timeout=0.05):
                found.append("free")
        except WorkspaceError as error:
            found.append(error.code)

    def others():
        other = threading.Thread(target=lock, args=(folder,))
        other.start()
        other.join()

    with pytest.raises(KeyError), state_dir.hold_workspace(folder, 0.05):
        lock(folder)
        lock(folder)
        lock(elsewhere)
        others()
        raise KeyError
    others()
    assert found == ["free", "free", "free", "busy", "free"]
    with state_dir.workspace_lock(folder), pytest.raises(WorkspaceError), state_dir.hold_workspace(folder, 0.05):
        pass
