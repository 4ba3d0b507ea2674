"""`doctor` looks at what a person has set up beside the vault: Obsidian, hooks that lead elsewhere, the file system."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from agents import Agent, Session
from workbench import Vault, spawn_ordinary, tree

from signet_sync.admin import hooks_install
from signet_sync.admin.doctor.checks import harness, storage
from signet_sync.admin.doctor.checks import vault as checks_vault
from signet_sync.admin.doctor.finding import Finding
from signet_sync.admin.doctor.installation import Installation
from signet_sync.capture import spool
from signet_sync.capture.spool import Job
from signet_sync.host import service
from signet_sync.storage import files, state_dir


@pytest.fixture
def vault() -> Vault:
    """An empty vault below the home folder."""
    return Vault(Path(os.environ["HOME"]) / "notes/agents")


def installation(vault: Vault) -> Installation:
    return Installation(str(vault.root), str(vault.db))


def obsidian(vault: Vault, place: Path, **settings: object) -> Finding:
    """What is said of an Obsidian that has opened a folder with these settings."""
    app = place / ".obsidian/app.json"
    app.parent.mkdir(exist_ok=True)
    app.write_text(json.dumps(settings))
    (finding,) = checks_vault.obsidian(installation(vault))
    return finding


def test_without_obsidian_nothing_is_said_of_it(vault: Vault) -> None:
    assert checks_vault.obsidian(installation(vault)) == []


@pytest.mark.parametrize("above", [0, 1, 2])
def test_an_obsidian_that_rewrites_links_is_told_of_wherever_its_vault_begins(vault: Vault, above: int) -> None:
    place = [vault.root, *vault.root.parents][above]
    finding = obsidian(vault, place, alwaysUpdateLinks=True)
    assert finding.level == "warning" and str(place) in finding.message and "switch off" in finding.remedy
    finding = obsidian(vault, place, alwaysUpdateLinks=False)
    inside = "" if above == 0 else os.path.relpath(vault.root, place) + "/"
    assert finding.level == "ok" and finding.remedy.endswith(f"add {inside}memory/")
    assert (" obsidian, or in " in finding.remedy) == (above == 0)
    finding = obsidian(vault, place, userIgnoreFilters=[f"{inside}memory/"])
    assert (finding.level, finding.remedy) == ("ok", "")


def test_nothing_above_home_is_looked_at_and_no_pipe_is_waited_for(vault: Vault) -> None:
    app = Path(os.environ["HOME"]).parent / ".obsidian/app.json"
    app.parent.mkdir()
    app.write_text('{"alwaysUpdateLinks": true}')
    (vault / ".obsidian").mkdir()
    os.mkfifo(vault / ".obsidian/app.json")
    assert checks_vault.obsidian(installation(vault)) == []
    (vault / ".obsidian/app.json").unlink()
    (vault / ".obsidian/app.json").write_bytes(b'["no object')
    assert checks_vault.obsidian(installation(vault))[0].level == "ok"


def test_what_the_file_system_can_do_is_tried_without_a_trace(vault: Vault) -> None:
    assert files.abilities(str(vault.root)) is None and not (vault / ".signet").exists()
    (vault / ".signet/tmp").mkdir(parents=True)
    before = tree(vault.root)
    able = files.abilities(str(vault.root))
    assert able is not None and able.links and able.swaps and tree(vault.root) == before


def test_a_remedy_names_workspace_and_database_only_where_it_has_to(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = str(vault.root / "an other.db")
    words = shlex.split(Installation(str(vault.root), other).command("reindex"))
    assert words == ["signet-sync", "--workspace", str(vault.root), "--db", other, "reindex"]
    monkeypatch.setenv("SIGNET_WORKSPACE", str(vault.root))
    assert installation(vault).command("reindex") == "signet-sync reindex"


def test_what_was_given_up_and_what_is_not_finished_is_told(vault: Vault) -> None:
    folder = state_dir.locate(str(vault.root))
    job = Job(event="end", harness="codex", session_id="s", agent_id="default", at="2026-03-20T10:00:00.000Z", tries=7)
    assert not spool.begin(spool.put(folder.spool, job))
    begun = Path(folder.journal) / f"{'a' * 32}.json"
    begun.parent.mkdir(parents=True)
    begun.write_text("{}")
    os.utime(begun, (1.0, 1.0))
    found = {one.name: one for one in storage.waiting(installation(vault))}
    assert "could not be processed: 1;" in found["spool-given-up"].message
    assert "not finished: 1" in found["unfinished"].message and found["unfinished"].fix


def test_little_room_is_told_with_the_place_to_look_at(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "LOW_SPACE", 1 << 62)
    found = storage.room(installation(vault))
    assert {one.level for one in found} == {"problem"} and all("du -xh" in one.remedy for one in found)


def test_hooks_that_feed_a_workspace_are_left_to_it_until_it_is_gone(vault: Vault, tmp_path: Path) -> None:
    (Path(os.environ["HOME"]) / ".claude").mkdir()
    other = Vault(tmp_path / "other")
    hooks_install.install(str(other.root), ["claude-code"], now="2026-03-20T10:00:00.000Z")
    (finding,) = harness.harness(installation(vault))
    assert str(other.root) in finding.message and not finding.fix and harness.broken(installation(vault)) == []
    shutil.rmtree(other.root)
    (finding,) = harness.harness(installation(vault))
    assert finding.fix and finding.remedy == installation(vault).command("hooks install claude-code")
    assert harness.broken(installation(vault)) == ["claude-code"]


def test_a_launch_agent_is_started_anew_by_the_command_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    calls = tmp_path / "calls"
    launchctl = tmp_path / "launchctl"
    launchctl.write_text(f'#!/bin/sh\necho "launchctl $*" >> {calls}\n[ "$1" != print ] || echo "state = running"\n')
    launchctl.chmod(0o755)
    unit = service.ServiceState("signet-sync", None, str(tmp_path / "unit.plist"), enabled=True, active=False)
    done = service.restart(unit, {"PATH": str(tmp_path)})
    assert done.running and done.steps == ("started signet-sync",) and done.by_hand == ()
    assert service.restart_command(unit) in calls.read_text().splitlines()


def test_what_cannot_be_started_is_said_and_what_to_type(tmp_path: Path) -> None:
    unit = service.ServiceState("signet-sync", None, str(tmp_path / "unit"), enabled=True, active=False)
    done = service.restart(unit, {"PATH": str(tmp_path)})
    assert not done.running and done.by_hand[-1] == service.restart_command(unit)


@pytest.mark.slow
def test_a_living_agent_mends_its_database_itself(tmp_path: Path) -> None:
    vault = Vault(tmp_path / "vault")
    words = [Session().write(vault).word for _ in range(3)]
    assert vault.call("reindex").code == 0  # whose end writes the log back into the database
    agent = Agent(vault)
    try:
        agent.passed()
        assert vault.db.stat().st_size > 81_920
        with vault.db.open("r+b") as file:
            file.seek(40_960)
            file.write(b"\xa5" * 40_960)
        answer = vault.call("doctor", "--fix", "--json")
        assert answer.code == 0 and answer.json["failed"] == [], answer
        assert any(f"the agent (pid {agent.process.pid})" in line for line in answer.json["fixed"])
        assert agent.process.poll() is None and all(len(vault.hits(word)) == 2 for word in words)
    finally:
        agent.close()


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["vault", "vault/memory", "machine/state"])
def test_whatever_is_closed_to_us_doctor_says_so_and_ends(tmp_path: Path, closed: str) -> None:
    vault = Vault(tmp_path / "vault")
    vault.session()
    vault.reindex()
    (tmp_path / closed).chmod(0)
    try:
        answer = spawn_ordinary("--workspace", vault.root, "doctor", "--json")
    finally:
        (tmp_path / closed).chmod(0o755)
    assert answer.code == 1 and answer.err == ""
    assert any(f"chmod u+rwx {tmp_path / closed}" in one["remedy"] for one in answer.json["findings"]), answer.out
