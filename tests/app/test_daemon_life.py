"""The life of the agent: one a workspace, ends in time, settings, the service manager, polling, a root that goes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import Inside, Session, heartbeat, known, manager, page, status, until, verdict
from workbench import ROOT, Vault

from benchmarks.corpus import write_corpus
from signet_sync.app.heartbeat import Notifier
from signet_sync.sync import engine

Start = Any
vault, start, quick = agents.vault, agents.start, agents.quick


def test_a_second_run_ends_with_4(vault: Vault, start: Start) -> None:
    first = start()
    first.passed()
    answer = vault.spawn("run")
    assert answer.code == 4 and f"pid {first.process.pid}" in answer.err
    assert status(vault)["pid"] == first.process.pid
    assert status(vault)["running"]


def test_idle_it_ends_at_once_and_leaves_nothing_behind(vault: Vault, start: Start) -> None:
    Session().write(vault)
    agent = start()
    agent.passed()
    assert (agent.end(), agent.output().count("Traceback")) == (0, 0)
    assert heartbeat(vault) is None
    wal = Path(f"{vault.db}-wal")
    assert not wal.exists() or wal.stat().st_size == 0
    assert not list((vault / ".signet" / "tmp").iterdir())
    assert (status(vault)["state"], status(vault)["running"]) == ("stopped", False)


def test_in_its_first_pass_it_ends_without_waiting_for_it(vault: Vault, start: Start) -> None:
    write_corpus(str(vault.root), 1000)
    agent = start()
    until(lambda: (heartbeat(vault) or {}).get("state") == "reconciling", "it has begun")
    assert agent.end() == 0, agent.output()
    assert vault.rows("select count(*) from files") == [(0,)], "it was in the midst of it"
    wal = Path(f"{vault.db}-wal")
    assert not wal.exists() or wal.stat().st_size == 0
    assert heartbeat(vault) is None


def test_with_its_output_closed_it_runs_all_the_same(vault: Vault) -> None:
    command = [sys.executable, "-m", "signet_sync", "--workspace", str(vault.root), "run"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *command], env=environ) as process:
        try:
            until(lambda: status(vault)["state"] == "watching", "alive")
            assert status(vault)["pid"] == process.pid
        finally:
            process.terminate()
    assert process.returncode == 0


def test_a_hangup_reads_the_settings_anew_and_bad_ones_leave_the_old(vault: Vault, start: Start) -> None:
    config = Path(os.environ["SIGNET_CONFIG"])
    config.parent.mkdir(parents=True, exist_ok=True)
    for number in range(8):
        Session(number).write(vault)
    agent = start("--interval", "3600")
    agent.passed()
    before = page(vault)
    assert "older ledger rows clipped" not in before

    config.write_text("[projection]\nbudget_tokens = 1000\n")
    agent.send(signal.SIGHUP)
    until(lambda: "older ledger rows clipped" in page(vault), "the smaller budget")
    assert len(page(vault)) < len(before)

    small = page(vault)
    config.write_text("[projection]\nbudget_tokens = 'plenty'\n")
    passed = status(vault)["last_full_pass"]
    agent.send(signal.SIGHUP)
    found = until(lambda: (now := status(vault))["trouble"] and now["last_full_pass"] != passed and now, "told")
    assert "budget_tokens" in found["trouble"]
    assert "the last good value or the default is used" in found["trouble"]
    assert found["state"] == "watching"
    assert page(vault) == small
    assert found["interval"] == 3600

    config.write_text("")
    agent.send(signal.SIGHUP)
    until(lambda: page(vault) == before and status(vault)["trouble"] is None, "the defaults are back")


def test_the_service_manager_hears_everything_that_it_waits_for(vault: Vault, start: Start, tmp_path: Path) -> None:
    Session().write(vault)
    with manager(tmp_path) as (address, heard):

        def texts() -> list[str]:
            return [text for _, text in heard()]

        agent = start(environ={"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "600000"})
        until(lambda: "STATUS=watching" in texts() and "READY=1" in texts(), "ready")
        count = texts().count("WATCHDOG=1")
        until(lambda: texts().count("WATCHDOG=1") >= count + 4, "signs of life of an idle loop")

        agent.send(signal.SIGHUP)
        until(lambda: texts().count("READY=1") == 2, "ready again")
        reloading = next(i for i, text in enumerate(texts()) if text.startswith("RELOADING=1\nMONOTONIC_USEC="))
        assert "READY=1" in texts()[reloading:]

        assert agent.end() == 0
        until(lambda: "STOPPING=1" in texts(), "stopping")


def test_polling_finds_what_events_would_have_told(vault: Vault, start: Start) -> None:
    environ = {
        "SIGNET_WATCH_MODE": "polling", "SIGNET_WATCH_POLL_INTERVAL": "0.3", "SIGNET_RECONCILE_SETTLE_SECONDS": "0.5",
    }  # fmt: skip
    Session().write(vault)
    agent = start(environ=environ)
    found = agent.passed()
    assert (found["state"], found["watch"]) == ("polling", "polling")
    session = known(agent.vault, Session().write(vault))
    path = session.path("summary")
    (vault / path).write_bytes((vault / path).read_bytes() + b"More.\n")
    until(lambda: verdict(agent.vault, path) == ("violation", "mutated"), "an edit")
    (vault / path).unlink()
    until(lambda: verdict(agent.vault, path) == ("violation", "vanished"), "a deletion")

    def kept() -> bool:
        if "Mine." not in page(vault):  # what is saved in place in the very moment of ours is lost
            (vault / "MEMORY.md").write_text("Mine.\n")
        return "Mine." in page(vault) and "signet:begin" in page(vault)

    until(kept, "a page that was written over")
    assert status(vault)["last_full_pass"] == found["last_full_pass"], "for all that no full pass was needed"
    assert agent.end() == 0


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
        notifier = Notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "200000"})

        def beats() -> int:
            return sum(text == "WATCHDOG=1" for _, text in heard())

        with Inside(vault, notifier=notifier) as agent:
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


def test_a_root_that_is_not_there_yet_is_waited_for(vault: Vault, start: Start) -> None:
    root = vault.root
    shutil.rmtree(root)
    agent = start()
    found = agent.wait("waiting: workspace")
    assert found["running"]
    assert vault.spawn("run").code == 4, "a second one does not wait beside it"
    time.sleep(0.3)
    assert not root.exists()

    elsewhere = Vault(root.parent / "mounted")
    session = Session().write(elsewhere)
    (elsewhere / "signet-sync.toml").write_text("[reconcile]\ninterval = 77\n")
    elsewhere.root.rename(root)
    assert agent.passed()["interval"] == 77, "its own settings count"
    assert len(vault.hits(session.word)) == 2
    assert agent.end() == 0
    assert not list(Path(os.environ["SIGNET_STATE"]).glob("*/heartbeat.json"))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("mode", ["auto", "off"])
def test_a_root_that_goes_and_comes_back_is_followed(vault: Vault, mode: str) -> None:
    session = Session().write(vault)
    away = vault.root.parent / "away"
    with Inside(vault, flags={"watch_mode": mode}) as agent:
        agent.wait("watching", "polling")
        vault.root.rename(away)
        agent.wait("waiting: workspace")
        between = Session().write(Vault(away))
        assert not vault.root.exists()
        away.rename(vault.root)
        until(lambda: vault.hits(between.word), "what happened in between")
        agent.wait("watching", "polling")
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
