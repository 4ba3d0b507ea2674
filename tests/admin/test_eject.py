"""`eject`: what is left of us afterwards, what is not touched, and that a kill in the middle loses nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import threading
from pathlib import Path

import artifacts_fixture as made
import crash_runner
import pytest
from workbench import NOW, Vault, cast, contents, numbered

from signet_sync.app.workspace import open_to_write
from signet_sync.errors import WorkspaceError
from signet_sync.settings.model import Settings
from signet_sync.storage import state_dir
from signet_sync.storage.state_dir import StateFolder
from signet_sync.sync import engine
from signet_sync.sync.workspace import Request

SETTINGS = (
    '{\n\t"model": "opus",\n\t"hooks": {\n\t\t"Stop": [ {"hooks": [{"type": "command", "command": "say"}]} ]\n\t}\n}\n'
)
MINE = "# What I wrote myself\n\n"


def of_two_agents(vault):
    vault.session(1)
    vault.session(2)
    vault.session(3, agent_id="scout")
    (vault / "MEMORY.md").write_text(MINE)
    vault.reindex()
    removed = made.token_for(session_id=numbered(2)["session_id"])
    assert vault.call("remove", removed, "--reason", "x", "--yes", "--now", NOW).code == 0
    with (vault / "MEMORY.md").open("a") as page:
        page.write("\nAnd this below.\n")


@pytest.fixture(scope="module")
def mould(tmp_path_factory):
    return cast(tmp_path_factory.mktemp("mould"), of_two_agents)


@pytest.fixture
def vault(mould, tmp_path):
    """Sessions of two agents, a removed one, and words of a person around the generated text of MEMORY.md."""
    return mould(tmp_path)


@pytest.fixture
def claude(vault):
    """Settings of a harness in which our hooks stand beside others."""
    place = Path(os.environ["HOME"]) / ".claude/settings.json"
    place.parent.mkdir(parents=True)
    place.write_text(SETTINGS)
    answer = vault.call("hooks", "install", "claude-code")
    assert answer.code == 0 and place.read_text() != SETTINGS
    return place


def eject(vault, *more, code=0):
    answer = vault.call("eject", "--yes", "--json", "--now", NOW, *more)
    assert answer.code == code, answer
    return answer.json


def unmarked(text):
    return re.sub(r"<!-- signet:(begin|end \w{16}) -->\n|Each \^handle on this page .+\n\n", "", text)


def test_nothing_of_us_is_left_but_what_belongs_to_the_person(vault, claude):
    before, page, scouts = contents(vault.root), vault.page(), vault.page("agents/scout/MEMORY.md")
    place = vault.state
    assert "opens with: signet-sync --agent scout expand HANDLE\n" in scouts
    done = eject(vault)
    assert done["hooks"] == ["claude-code"] and done["state"] == str(place) and done["notes"] == []
    assert claude.read_text() == SETTINGS
    assert not place.exists() and not (vault / ".signet").exists()
    assert "signet-sync expand" in page and "signet-sync" not in vault.page()
    assert vault.page() == unmarked(page) and vault.page().startswith(MINE) and "step number 1 " in vault.page()
    assert vault.page("agents/scout/MEMORY.md") == unmarked(scouts)
    after = contents(vault.root)
    pages = {"MEMORY.md", "agents/scout/MEMORY.md"}
    assert {path for path in before if before[path] != after.get(path) and not path.startswith(".signet/")} == pages
    assert any(path.startswith("memory/tombstones/") for path in after)
    again = eject(vault)
    assert again["pages"] == again["hooks"] == [] and again["state"] is None
    assert contents(vault.root) == after and not place.exists()


def test_a_dry_run_shows_what_would_be_lost_and_does_nothing(vault, claude):
    assert vault.call("remember", "In lantern the kestrel stays.", "--json").code == 0
    (vault / made.path_for("summary", **who(1))).unlink()
    vault.reindex()
    of_a_reader = ("signet-sync.db-wal", "signet-sync.db-shm")
    before = contents(vault.root), contents(vault.state, but=of_a_reader), claude.read_text()
    plan = vault.call("eject", "--dry-run", "--json").json
    assert plan["hooks"] == ["claude-code"]
    assert set(plan["pages"]) == {"MEMORY.md", "agents/scout/MEMORY.md"}
    told = vault.call("eject", "--dry-run").out
    assert "exist nowhere else" in told and "backup create FILE" in told
    assert (contents(vault.root), contents(vault.state, but=of_a_reader), claude.read_text()) == before


def who(number):
    return {name: numbered(number)[name] for name in ("session_id", "captured_at")}


def test_what_was_handed_over_is_written_first(vault, claude):
    transcript = Path(os.environ["HOME"]) / ".claude/projects/x/5e551009-0000-4000-8000-000000000009.jsonl"
    transcript.parent.mkdir(parents=True)
    shared = {"sessionId": transcript.stem, "cwd": "/home/ada/code/lantern", "timestamp": "2026-03-28T09:00:00.000Z"}
    said = {
        "user": "Bound the retry loop of src/queue.py, kestrelninth.",
        "assistant": "Ejected: it stops after five tries.",
    }
    for role, text in said.items():
        with transcript.open("a") as file:
            file.write(json.dumps({"type": role, "message": {"role": role, "content": text}, **shared}) + "\n")
    event = {"hook_event_name": "SessionEnd", "session_id": transcript.stem, "transcript_path": str(transcript),
             "cwd": "/home/ada/code/lantern", "reason": "exit"}  # fmt: skip
    answer = vault.spawn("hook", "claude-code", input=json.dumps(event).encode())
    assert answer.code == 0, answer
    eject(vault)
    assert any(b"kestrelninth" in path.read_bytes() for path in vault.memory.glob("*.md"))


# ── what must not be deleted ──


def test_while_an_agent_runs_by_hand_nothing_is_done(vault, claude):
    before = contents(vault.root)
    with state_dir.run_lock(StateFolder(str(vault.state), vault.state.name)):
        error = eject(vault, code=4)["error"]
        told = vault.call("eject", "--dry-run")
    assert told.code == 0 and "still runs" in told.out
    assert "still runs" in error["message"] and error["hint"] and contents(vault.root) == before
    assert claude.read_text() != SETTINGS


def test_while_files_are_away_nothing_is_done(vault, claude):
    shutil.move(vault.memory, vault.root / "elsewhere")
    error = eject(vault, code=5)["error"]
    assert "accept-removals" in error["hint"] and vault.db.exists() and claude.read_text() != SETTINGS


def test_a_worker_of_a_hook_ends_first_and_nothing_is_written_after_eject(vault, claude, monkeypatch):
    folder = StateFolder(str(vault.state), vault.state.name)
    monkeypatch.setattr("signet_sync.admin.eject._WORKER", 0.1)
    with state_dir.intake_lock(folder):
        assert eject(vault, code=3)["error"]["code"] == "busy"
        assert claude.read_text() != SETTINGS and "signet:begin" in vault.page()
    with open_to_write(str(vault.root), Settings()) as workspace:
        eject(vault)
        with pytest.raises(WorkspaceError, match="state folder is gone"):
            engine.run_pass(workspace, Request(now_us=0))
    assert vault.call("session", "take-spool").code == 0
    assert not Path(folder.path).exists() and not (vault / ".signet").exists() and "signet:begin" not in vault.page()


def test_a_copy_of_a_workspace_leaves_the_state_of_the_original_alone(vault):
    vault.reindex()
    copy = Vault(vault.root.parent / "copy")
    shutil.copytree(vault.root, copy.root, dirs_exist_ok=True)
    before = contents(vault.state)
    eject(copy)
    assert contents(vault.state) == before and "signet:begin" in vault.page() and "signet:begin" not in copy.page()
    for words in (("--index-only",), ()):  # its state stands under its path first, then under an id of its own
        shutil.copytree(vault / ".signet", copy / ".signet", dirs_exist_ok=True)
        copy.reindex(*words)
        eject(copy)
        assert contents(vault.state) == before
        assert [path for path in vault.state.parent.iterdir() if path.is_dir()] == [vault.state]


def test_links_are_not_followed(vault):
    precious = vault.root.parent / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    (vault.state / "backups/link").symlink_to(precious)
    elsewhere = vault.root.parent / "elsewhere"
    vault.state.rename(elsewhere)
    vault.state.symlink_to(elsewhere)
    [note] = eject(vault)["notes"]
    assert "is a link" in note
    assert (elsewhere / "signet-sync.db").exists() and (precious / "file").read_text() == "mine"


def test_the_state_of_another_workspace_is_refused(vault):
    place, other = vault.state, vault.root.parent / "other"
    folder = StateFolder(str(place), place.name)
    shutil.copytree(vault.root / ".signet", other / ".signet")
    (place / "workspace.json").write_text(json.dumps({"path": str(other)}))
    with pytest.raises(WorkspaceError, match="other"):
        state_dir.discard(folder, str(vault.root))
    with pytest.raises(WorkspaceError, match="not this workspace's"):
        state_dir.discard(StateFolder(str(vault.root), "x"), str(vault.root))
    assert Path(folder.database).exists() and vault.memory.is_dir()


SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
  *show*) echo ActiveState=active; echo UnitFileState=enabled ;;
  *disable*) $ENDING ;;
esac
"""


@pytest.fixture
def served(vault, tmp_path, monkeypatch):
    """A vault whose agent runs as a service, as a service manager of our own has it: `ends` says whether it obeys."""
    programs, stop = tmp_path / "bin", tmp_path / "stop"
    programs.mkdir()
    (programs / "systemctl").write_text(SYSTEMCTL)
    (programs / "systemctl").chmod(0o755)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("ENDING", f"touch {stop}")
    assert vault.call("service", "install").code == 0

    def agent():
        with state_dir.run_lock(StateFolder(str(vault.state), vault.state.name)):
            running.set()
            while not stop.exists() and not over.is_set():
                over.wait(0.02)

    running, over = threading.Event(), threading.Event()
    thread = threading.Thread(target=agent)
    thread.start()
    running.wait(300)
    yield vault
    over.set()
    thread.join()


def test_the_service_is_stopped_before_anything_is_deleted(served):
    [unit] = (Path(os.environ["XDG_CONFIG_HOME"]) / "systemd/user").glob("signet-sync-vault-*.service")
    plan = served.call("eject", "--dry-run", "--json").json
    assert plan["services"] == [unit.stem] and unit.exists()
    done = eject(served)
    assert done["services"] == [unit.stem] and done["state"] and not unit.exists()
    assert f"disable --now {unit.name}" in Path(os.environ["CALLS"]).read_text()


def test_while_the_service_does_not_stop_nothing_is_deleted(served, monkeypatch):
    monkeypatch.setattr("signet_sync.admin.eject._ENDING", 0.1)
    monkeypatch.setenv("ENDING", "exit 1")
    error = eject(served, code=4)["error"]
    assert "systemctl --user disable" in error["hint"]
    assert served.db.exists() and "signet:begin" in served.page()


@pytest.mark.parametrize("every", [55, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_at_any_step_the_same_command_finishes(vault, claude, every):
    """Apart from the table of operations: the state itself goes, and no pass may bring it back."""
    kept, home = vault.root.parent / "kept", Path(os.environ["HOME"])
    vault.reindex()
    expected = unmarked(vault.page())
    memory = contents(vault.memory)
    places = {"vault": vault.root, "state": Path(os.environ["SIGNET_STATE"]), "home": home}
    for name, place in places.items():
        shutil.copytree(place, kept / name)

    def killed(step):
        os.chdir(vault.root.parent)
        crash_runner.arm(step)
        return crash_runner.command(str(vault.root), "eject", "--yes", "--now", NOW)

    step, code = 1, None
    while code != 0:
        for name, place in places.items():
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(kept / name, place)
        code = crash_runner.forked(killed, step)
        assert code in (0, crash_runner.KILLED), (step, code)
        eject(vault)
        assert vault.page() == expected, step
        assert claude.read_text() == SETTINGS and contents(vault.memory) == memory
        assert [*places["state"].iterdir()] == [] and not (vault / ".signet").exists(), step
        step += every
