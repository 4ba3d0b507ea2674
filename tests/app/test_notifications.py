"""Being told: once for each thing, at most once an hour for each kind, by real programs on PATH."""

from __future__ import annotations

import json
import os
import shlex
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import agents
import pytest
from agents import Inside, Session, some, until
from workbench import Vault, call

from signet_sync.app.notifications import HOUR, LONGEST, Notifications, send, stopped
from signet_sync.app.workspace import open_workspace
from signet_sync.capture import spool
from signet_sync.errors import DatabaseError
from signet_sync.host import notifications
from signet_sync.settings import model
from signet_sync.settings.model import Settings
from signet_sync.sync.planner import Cliff
from signet_sync.sync.store import passes
from signet_sync.sync.workspace import Workspace

vault, quick = agents.vault, agents.quick


class Desk:
    """A folder of programs at the head of PATH; each writes its arguments down, one line a call."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.log = folder / "told"

    def program(self, name: str, script: str = "") -> Path:
        path = self.bin / name
        path.write_text(
            f"#!{sys.executable} -IS\nimport json, sys\n"
            f"with open({str(self.log)!r}, 'a') as log: log.write(json.dumps(sys.argv[1:]) + '\\n')\n{script}"
        )
        path.chmod(0o755)
        return path

    def told(self) -> list[list[str]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def texts(self) -> list[str]:
        return [words[-1] for words in self.told()]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    found = Desk(tmp_path)
    monkeypatch.setenv("PATH", f"{found.bin}:{os.environ['PATH']}")
    return found


class Teller:
    """What the agent would tell of a workspace, at times of our own."""

    def __init__(self, workspace: Workspace, desk: Desk) -> None:
        self.workspace = workspace
        self.desk = desk
        self.now = 1_000_000.0

    def look(self, after: float = 0.0) -> list[str]:
        """What is told now, so many seconds after the last look; each look is that of an agent just started."""
        self.now += after
        before = len(self.desk.told())
        Notifications(self.workspace, lambda: self.now).check()
        for thread in threading.enumerate():
            if thread.name == "notifications":
                thread.join(30)
        return self.desk.texts()[before:]

    def violate(self, path: str, batch: str) -> None:
        with self.workspace.database.transaction():
            self.workspace.database.execute(
                "insert into violations values(?, 'mutated', 'm', '2026-03-29T12:00:00.000Z', '', ?)", (path, batch)
            )

    def settle(self, batch: str) -> None:
        with self.workspace.database.transaction():
            self.workspace.database.execute("delete from violations where batch = ?", (batch,))

    def halt(self) -> None:
        passes.halt(self.workspace.database, Cliff(40, 52, "40 of 52 indexed files are gone"))

    def go_on(self) -> None:
        with self.workspace.database.transaction():
            passes.end_halt(self.workspace.database)


@pytest.fixture
def teller(vault: Vault, desk: Desk) -> Iterator[Teller]:
    desk.program("tell-me")
    workspace = open_workspace(str(vault.root), Settings(notify_command=("tell-me", "--to", "ann")))
    yield Teller(workspace, desk)
    workspace.close()


def test_a_halt_is_told_once_and_the_next_one_again(teller: Teller) -> None:
    assert teller.look() == []
    teller.halt()
    (text,) = teller.look(1)
    assert text == (
        f"{teller.workspace.root} is halted, nothing was dropped (40 of 52 indexed files are gone): signet-sync status"
    )
    assert teller.desk.told()[0][:2] == ["--to", "ann"]
    assert teller.look(1) == teller.look(2 * HOUR) == []
    teller.go_on()
    assert teller.look(1) == []
    teller.halt()
    assert len(teller.look(1)) == 1


def test_a_kind_is_told_at_most_once_an_hour_and_nothing_is_lost_by_that(teller: Teller) -> None:
    teller.violate("memory/a.md", "one")
    teller.violate("memory/b.md", "one")
    (text,) = teller.look()
    assert text.startswith("2 sealed files of ") and text.endswith(": signet-sync violations list")
    teller.violate("memory/c.md", "two")
    assert teller.look(60) == []
    teller.halt()
    assert len(teller.look(60)) == 1, "another kind has an hour of its own"
    (text,) = teller.look(HOUR)
    assert text.startswith("1 sealed file of ")
    teller.settle("one")
    assert teller.look(2 * HOUR) == []
    teller.violate("memory/a.md", "three")
    assert len(teller.look(1)) == 1
    assert teller.look(-5 * HOUR) == []
    teller.violate("memory/b.md", "four")
    assert len(teller.look(0)) == 1, "a clock that was set back silences nobody"


def test_what_hooks_told_of_and_was_given_up_is_told(teller: Teller) -> None:
    bad = Path(teller.workspace.state.spool) / "bad"
    bad.mkdir(parents=True)
    for name in ("a", "b"):
        (bad / name).write_text("{}")
    assert spool.given_up(teller.workspace.state.spool) == 2
    (text,) = teller.look()
    assert "2 sessions" in text and "signet-sync logs intake" in text
    (bad / "a").unlink()
    assert teller.look(2 * HOUR) == []
    (bad / "c").write_text("{}")
    (text,) = teller.look(HOUR)
    assert "1 session " in text


def test_nothing_is_told_that_could_not_be_remembered(teller: Teller) -> None:
    memory = Path(teller.workspace.state.path) / "told.json"
    memory.mkdir()
    teller.halt()
    assert teller.look() == [], "else it would be told at every look"
    memory.rmdir()
    assert len(teller.look()) == 1


def test_by_default_nobody_is_told_and_nothing_remembered(vault: Vault, desk: Desk) -> None:
    desk.program("notify-send")
    workspace = open_workspace(str(vault.root), Settings())
    teller = Teller(workspace, desk)
    teller.halt()
    assert teller.look() == []
    assert not (Path(workspace.state.path) / "told.json").exists()
    workspace.close()


@pytest.mark.slow
def test_the_running_agent_tells_of_a_halt_and_of_a_violation(vault: Vault, desk: Desk, quick: None) -> None:
    desk.program("notify-send")
    sessions = some(vault, 9)
    aside = vault.root / "aside"
    with Inside(vault, flags={"notify_desktop": True}) as agent:
        agent.wait("watching")
        vault.memory.rename(aside)
        agent.wait("halted")
        until(lambda: len(desk.told()) == 1, "the halt")
        aside.rename(vault.memory)
        agent.wait("watching")
        path = vault / sessions[0].path("summary")
        path.write_bytes(path.read_bytes() + b"More.\n")
        until(lambda: len(desk.told()) == 2, "the violation")
        agent.settled()
    halt, violation = desk.told()
    assert halt[:3] == ["--app-name=signet-sync", "--", "signet-sync"]
    assert f"{vault.root} is halted" in halt[3]
    assert "1 sealed file of" in violation[3]


def test_a_workspace_cannot_have_anything_told(vault: Vault) -> None:
    (vault / "signet-sync.toml").write_text('[notify]\ndesktop = true\ncommand = ["sh", "-c", "true"]\n')
    settings, warnings = model.load(str(vault.root))
    assert not settings.notify_desktop and settings.notify_command == ()
    assert len(warnings) == 2 and "a workspace may not set this" in warnings[0].message
    assert model.notification_settings() == (False, ())


def test_a_session_is_told_at_its_start_and_no_longer_than_it_lasts(vault: Vault) -> None:
    sessions = some(vault, 9)
    vault.reindex()
    path = vault / sessions[0].path("summary")
    whole = path.read_bytes()
    path.write_bytes(whole + b"More.\n")
    vault.reindex()

    def told() -> list[str]:
        return [line for line in vault.call("context").out.splitlines() if line.startswith("> [!warning]")]

    (line,) = told()
    assert "1 file of this vault was changed" in line and line.endswith(": signet-sync violations list")
    aside = vault.root / "aside"
    vault.memory.rename(aside)
    vault.reindex(code=5)
    (line,) = told()
    assert "signet-sync is halted, nothing was dropped (" in line and line.endswith(": signet-sync status")
    before = vault.page()
    vault.reindex(code=5)
    assert vault.page() == before
    aside.rename(vault.memory)
    path.write_bytes(whole)
    vault.reindex()
    assert told() == []


# ── the ways ──


def test_a_text_is_an_argument_and_never_a_part_of_a_script(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.program("notify-send")
    desk.program("osascript")
    text = '" & (do shell script "false") & "$(false) <b>&'
    assert notifications.on_desktop(text) == ""
    monkeypatch.setattr(sys, "platform", "darwin")
    assert notifications.on_desktop(text) == ""
    linux, macos = desk.told()
    assert linux[-1] == '" &amp; (do shell script "false") &amp; "$(false) &lt;b&gt;&amp;', "a server may read markup"
    assert macos[-2:] == ["signet-sync", text]
    assert all(text not in word for word in macos[:-1])


def test_what_goes_wrong_on_the_way_is_an_answer(desk: Desk) -> None:
    assert notifications.by_program(["no-such-program"], "x") == "there is no program no-such-program"
    desk.program("fails", "sys.exit(3)\n")
    assert notifications.by_program(["fails"], "x") == "fails ended with 3"
    (desk.bin / "broken").write_text("#!/nonexistent\n")
    (desk.bin / "broken").chmod(0o755)
    assert notifications.by_program(["broken"], "x").startswith("broken cannot be started: ")
    assert "cannot be passed on" in notifications.by_program(["fails"], "a\0b")


def test_a_program_that_does_not_end_is_ended_with_all_that_it_started(desk: Desk, tmp_path: Path) -> None:
    child = tmp_path / "child"
    script = desk.bin / "hangs"
    script.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {shlex.quote(str(child))}\nwait\n")
    script.chmod(0o755)
    began = time.monotonic()
    assert "did not end within" in notifications.by_program(["hangs"], "x", limit=0.3)
    assert time.monotonic() - began < 10
    pid = child.read_text().strip()
    until(lambda: not Path(f"/proc/{pid}").exists() or ") Z" in Path(f"/proc/{pid}/stat").read_text(), "it is gone", 10)


def test_a_line_is_short_plain_and_holds_no_secret(desk: Desk) -> None:
    desk.program("tell-me")
    secret = "ghp_" + "a1B2" * 9
    assert send(f"two\nlines \x1b[31m {secret} " + "word " * 200, False, ("tell-me",)) == []
    (text,) = desk.texts()
    assert len(text) == LONGEST and text.isprintable() and secret not in text and text.startswith("two lines")


# ── the command ──


def own_settings(text: str) -> None:
    path = Path(model.user_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_try_says_whether_it_arrived(desk: Desk) -> None:
    nothing = call("notify", "Hello")
    assert nothing.code == 2 and "neither notify.desktop nor notify.command is set" in nothing.err
    desk.program("tell-me")
    own_settings('[notify]\ncommand = ["tell-me", "-x"]\n')
    told = call("notify", "--json", "Hello")
    assert (told.code, told.json) == (0, {"text": "Hello", "ways": ["command"], "troubles": []})
    assert desk.told() == [["-x", "Hello"]]
    (desk.bin / "tell-me").unlink()
    missed = call("notify", "Hello")
    assert missed.code == 1 and "not sent: there is no program tell-me" in missed.err
    for wrong in ([], ["x", "--unit", "y"]):
        assert call("notify", *wrong).code == 2


@pytest.mark.parametrize("command", ['["bin/tell"]', '[""]', '["a\\u0000b"]', "[1]", '"tell"'])
def test_a_program_that_cannot_be_meant_is_refused(command: str, tmp_path: Path) -> None:
    own_settings(f"[notify]\ncommand = {command}\n")
    answer = call("notify", "Hello")
    assert answer.code == 2 and "notify.command" in answer.err


def test_a_unit_that_failed_is_told_whatever_the_settings_are(desk: Desk) -> None:
    desk.program("tell-me")
    own_settings('[notify]\ncommand = ["tell-me"]\n[reconcile]\ninterval = "soon"\n')
    answer = call("notify", "--unit", "signet-sync-notes-0a1b2c3d.service")
    assert answer.code == 0
    assert "the service signet-sync-notes-0a1b2c3d.service failed" in desk.texts()[0]
    own_settings("[notify\n")
    answer = call("notify", "--unit", "signet-sync.service")
    assert answer.code == 0 and "signet-sync doctor" in answer.err, "the journal has it at least"


def test_an_agent_that_ends_by_an_error_tells_once_until_one_runs_again(teller: Teller) -> None:
    root, desk = teller.workspace.root, teller.desk
    error = DatabaseError("the disk is gone", hint="bring it back")
    own_settings('[notify]\ncommand = ["tell-me"]\n')
    for _ in range(2):
        stopped(root, error)
    assert desk.texts() == [f"the agent of {root} ended: the disk is gone — bring it back"]
    teller.now = time.time()
    teller.look()
    stopped(root, error)
    assert len(desk.told()) == 1, "the hour is not over"
    memory = Path(teller.workspace.state.path) / "told.json"
    memory.write_text(memory.read_text().replace('"at": 1', '"at": 0'))
    stopped(root, error)
    assert len(desk.told()) == 2


@pytest.mark.slow
def test_without_systemd_the_agent_tells_by_itself_that_it_ends(vault: Vault, desk: Desk) -> None:
    Session().write(vault)
    vault.reindex()
    desk.program("tell-me")
    own_settings('[notify]\ncommand = ["tell-me"]\n')
    assert vault.spawn("run", "--interval", "-1", environ={"NOTIFY_SOCKET": "/nonexistent"}).code == 2
    assert desk.told() == [], "systemd tells by a unit of its own"
    for _ in range(2):
        assert vault.spawn("run", "--interval", "-1").code == 2
    (text,) = desk.texts()
    assert "interval" in text
