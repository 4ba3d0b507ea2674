"""The life of the agent: one a workspace, ends in time, settings, the service manager, polling, a root that goes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import Inside, Session, heartbeat, manager, page, status, until
from workbench import ROOT, Vault

from benchmarks.corpus import write_corpus
from signet_sync.sync import engine

quick = agents.quick


def test_one_agent_a_workspace_tells_its_manager_how_it_is_and_leaves_nothing_behind(
    vault: Vault, tmp_path: Path
) -> None:
    """Its output is closed, as some that start it leave it."""
    Session().write(vault)
    command = [sys.executable, "-m", "signet_sync", "--workspace", str(vault.root), "run"]
    with manager(tmp_path) as (address, heard):
        environ = {**os.environ, "PYTHONPATH": str(ROOT), "NOTIFY_SOCKET": address, "WATCHDOG_USEC": "600000"}

        def texts() -> list[str]:
            return [text for _, text in heard()]

        with subprocess.Popen(["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *command], env=environ) as process:
            try:
                until(lambda: "STATUS=watching" in texts() and "READY=1" in texts(), "ready")
                answer = vault.spawn("run")
                assert answer.code == 4 and f"pid {process.pid}" in answer.err
                assert (status(vault)["pid"], status(vault)["running"]) == (process.pid, True)
                count = texts().count("WATCHDOG=1")
                until(lambda: texts().count("WATCHDOG=1") >= count + 4, "signs of life of an idle loop")
            finally:
                process.terminate()
        assert process.returncode == 0
        until(lambda: "STOPPING=1" in texts(), "stopping")
    assert "Traceback" not in (vault.state / "logs/signet-sync.log").read_text()
    assert heartbeat(vault) is None
    wal = Path(f"{vault.db}-wal")
    assert not wal.exists() or wal.stat().st_size == 0
    assert not list((vault / ".signet" / "tmp").iterdir())
    assert (status(vault)["state"], status(vault)["running"]) == ("stopped", False)


def test_in_its_first_pass_it_ends_without_waiting_for_it(vault: Vault) -> None:
    write_corpus(str(vault.root), 300)
    with Inside(vault) as agent:
        agent.wait("reconciling")
        agent.stop()
    assert agent.code == 0 and heartbeat(vault) is None
    assert vault.rows("select count(*) from files") == [(0,)], "it was in the midst of it"


@pytest.mark.usefixtures("quick")
def test_a_reload_reads_the_settings_anew_and_bad_ones_leave_the_old(vault: Vault) -> None:
    config = Path(os.environ["SIGNET_CONFIG"])
    config.parent.mkdir(parents=True, exist_ok=True)
    for number in range(8):
        Session(number).write(vault)
    with Inside(vault, interval=3600.0) as agent:
        agent.wait("watching")
        before = page(vault)
        assert "older ledger rows clipped" not in before

        config.write_text("[projection]\nbudget_tokens = 1000\n")
        until(lambda: "older ledger rows clipped" in page(vault), "the smaller budget")
        small = page(vault)
        config.write_text("[projection]\nbudget_tokens = 'plenty'\n")
        found = until(lambda: (now := status(vault))["trouble"] and now, "told")
        assert "budget_tokens" in found["trouble"]
        assert "the last good value or the default is used" in found["trouble"]
        assert (found["state"], found["interval"], page(vault)) == ("watching", 3600, small)

        config.write_text("")
        until(lambda: page(vault) == before and status(vault)["trouble"] is None, "the defaults are back")


def test_signs_of_life_come_from_the_loop_that_works(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Session().write(vault)
    stuck, hangs, release = threading.Event(), threading.Event(), threading.Event()
    really = engine.run_pass

    def hanging(workspace: Any, request: Any) -> Any:
        if stuck.is_set():
            hangs.set()
            release.wait(600)
        return really(workspace, request)

    monkeypatch.setattr(engine, "run_pass", hanging)
    with manager(tmp_path) as (address, heard):
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        monkeypatch.setenv("WATCHDOG_USEC", "200000")

        def beats() -> int:
            return sum(text == "WATCHDOG=1" for _, text in heard())

        with Inside(vault) as agent:
            agent.wait("watching")
            first = beats()
            until(lambda: beats() > first + 3, "alive")
            stuck.set()
            Session().write(vault)
            until(hangs.is_set, "it hangs")

            def silent() -> bool:
                before = beats()
                time.sleep(0.5)
                return beats() == before

            until(silent, "a loop that hangs says nothing")
            before = beats()
            release.set()
            until(lambda: beats() > before + 3, "alive again")


@pytest.mark.usefixtures("quick")
def test_a_root_that_is_not_there_yet_is_waited_for(vault: Vault) -> None:
    root = vault.root
    shutil.rmtree(root)
    with Inside(vault) as agent:
        agent.wait("waiting: workspace")
        assert status(vault)["running"]
        assert vault.spawn("run").code == 4, "a second one does not wait beside it"
        assert not root.exists()

        elsewhere = Vault(root.parent / "mounted")
        session = Session().write(elsewhere)
        (elsewhere / "signet-sync.toml").write_text("[reconcile]\ninterval = 77\n")
        elsewhere.root.rename(root)
        agent.wait("watching")
        assert status(vault)["interval"] == 77, "its own settings count"
        assert len(vault.hits(session.word)) == 2
    assert not list(Path(os.environ["SIGNET_STATE"]).glob("*/heartbeat.json"))


@pytest.mark.usefixtures("quick")
def test_a_root_that_goes_and_comes_back_is_followed(vault: Vault) -> None:
    session = Session().write(vault)
    away = vault.root.parent / "away"
    with Inside(vault) as agent:
        agent.wait("watching")
        vault.root.rename(away)
        agent.wait("waiting: workspace")
        between = Session().write(Vault(away))
        assert not vault.root.exists()
        away.rename(vault.root)
        until(lambda: vault.hits(between.word), "what happened in between")
        agent.wait("watching")
        assert vault.hits(session.word)
        log = (vault.state / "logs/signet-sync.log").read_text()
        assert "there is no workspace at" in log and f"INFO the workspace at {vault.root} is there" in log


@pytest.mark.usefixtures("quick")
def test_another_workspace_in_its_place_gets_its_own_state(vault: Vault) -> None:
    mine = Session().write(vault)
    other = Vault(vault.root.parent / "other")
    theirs = Session().write(other)
    other.reindex()
    with Inside(vault) as agent:
        agent.wait("watching")
        first = vault.state
        vault.root.rename(vault.root.parent / "away")
        agent.wait("waiting: workspace")
        other.root.rename(vault.root)
        agent.wait("watching")
        assert vault.state != first
        assert vault.hits(theirs.word)
        assert not vault.hits(mine.word)
        assert not (first / "heartbeat.json").exists()
    assert agent.code == 0
