"""What no event tells the agent: content to read again, its own writes, time, changes without an end."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import agents
import pytest
from agents import LINUX, Inside, Session, ago, page, some, until, verdicts
from workbench import Vault

from signet_sync.app import heartbeat, scheduler

quick = agents.quick


@pytest.mark.usefixtures("quick")
def test_its_own_writes_never_wake_it_again_and_again(vault: Vault) -> None:
    some(vault, 3)
    vault.session(5, agent_id="researcher", captured_at=Session().who["captured_at"])
    with Inside(vault) as agent:
        agent.wait("watching")
        agent.settled()
        Session().write(vault)
        agent.settled(1.5)
        assert (vault / "agents" / "researcher" / "MEMORY.md").exists()


@pytest.mark.usefixtures("quick")
def test_another_programs_busy_file_makes_no_work(vault: Vault) -> None:
    Session().write(vault)
    with (vault / "memory" / "memories.db-wal").open("wb", buffering=0) as busy, Inside(vault) as agent:
        busy.write(b"x")
        agent.wait("watching")

        def rests() -> bool:
            count = len(agent.passes)
            for _ in range(16):
                busy.write(b"x" * 100)
                time.sleep(0.05)
            time.sleep(0.5)
            return len(agent.passes) == count

        until(rests, "no pass while it is written")
        assert verdicts(vault)["memory/memories.db-wal"] == ("ignored", "foreign-name")


@pytest.mark.usefixtures("quick")
def test_changes_without_an_end_starve_nothing(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "LONGEST_WAIT", 0.3)
    doomed = Session().write(vault)
    note = vault / "memory" / "note.md"
    with Inside(vault, debounce=0.1, settle_seconds=0.5) as agent:
        agent.wait("watching")
        agent.settled()
        (vault / doomed.path("summary")).unlink()
        ended = threading.Event()

        def busy() -> None:
            number = 0
            while not ended.wait(0.05):
                number += 1
                (vault / "memory" / f"note-{number}.md").write_text("x")

        thread = threading.Thread(target=busy)
        thread.start()
        try:
            until(lambda: verdicts(vault).get(doomed.path("summary")) == ("violation", "vanished"), "confirmed")
            until(lambda: "checkpoint" not in agent.work._at, "a checkpoint")
        finally:
            ended.set()
            thread.join()
    assert not note.exists()


@pytest.mark.skipif(not LINUX, reason="prlimit is Linux's")
def test_a_heartbeat_grows_old_only_when_the_agent_does_nothing(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "BEAT", 0.2)
    monkeypatch.setattr(heartbeat, "TOUCH", 0.05)
    Session().write(vault)
    with Inside(vault) as agent:
        agent.wait("watching")
        agent.settled()
        file = vault.state / "heartbeat.json"
        before, text = file.stat().st_mtime_ns, file.read_text()
        until(lambda: file.stat().st_mtime_ns > before, "a sign of life")
        assert file.read_text() == text, "touched, not written"
        file.unlink()
        until(file.exists, "written again")
    assert not file.exists()


LEAVES = 30 * 86_400  # a session's time in the window, in seconds


@pytest.mark.usefixtures("quick")
def test_a_session_leaves_the_page_when_its_time_is_over_without_any_event(vault: Vault) -> None:
    stays = Session().write(vault)
    with Inside(vault, interval=0.5) as agent:
        agent.wait("watching")
        for left in (2, 20, 200):  # seconds in which a busy machine has to write the page
            goes = Session()
            goes.who["captured_at"] = ago(seconds=LEAVES - left)
            goes.write(vault)
            with suppress(AssertionError):
                until(lambda row=f"| {goes.sentence}": row in page(vault), "on the page", left)
                break
        until(lambda: f"| {goes.sentence}" not in page(vault), "out of the window", 300)
        assert stays.sentence in page(vault)
