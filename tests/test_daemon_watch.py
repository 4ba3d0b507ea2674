"""The agent and what no event tells it: a lost database, a deaf watch, a sleep, a Signet daemon, its own writes."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import artifacts_fixture as made
import pytest
from agents import LINUX, Agent, Inside, Session, ago, heartbeat, manager, page, status, until, verdicts
from workbench import Vault

from signet_sync.agent import daemon as room
from signet_sync.agent import presence, reconcile
from signet_sync.agent.daemon import Options
from signet_sync.errors import AnotherAgent, DatabaseError
from signet_sync.host.notify import Notifier

Start = Any


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the agent looks for four times a minute, it looks for all the time; what it waits for, it waits less."""
    monkeypatch.setattr(room, "BEAT", 0.2)
    monkeypatch.setattr(room, "ROOT_POLL", 0.1)
    monkeypatch.setattr(room, "LONGEST_BACKOFF", 0.5)
    monkeypatch.setattr(room, "CHECKPOINT_AFTER", 0.2)
    monkeypatch.setattr(presence, "TOUCH", 0.05)


@pytest.fixture
def start(vault: Vault) -> Iterator[Start]:
    """Starts agents as processes; none is left at the end."""
    started: list[Agent] = []

    def run(*options: str, **given: Any) -> Agent:
        started.append(Agent(vault, *options, **given))
        return started[-1]

    yield run
    for agent in started:
        agent.close()


def counts(vault: Vault) -> Any:
    return status(vault)["counts"]


def some(vault: Vault, count: int = 9) -> list[Session]:
    return [Session().write(vault) for _ in range(count)]


# ── the database ──


def buried(vault: Vault) -> Session:
    """A session that a tombstone removed, whose tombstone file is lost as well: only the database remembers."""
    session = Session().write(vault)
    vault.put(made.tombstone(session_id=session.who["session_id"]), "memory/tombstones")
    return session


def overwrite(path: Path, start: int = 0) -> None:
    with path.open("r+b") as stream:
        stream.seek(start)
        stream.write(random.Random(1).randbytes(path.stat().st_size - start))


def overwrite_table(path: Path) -> None:
    """Leaves header and schema whole, so that it opens, but not what the agent knows of files."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    root = connection.execute("select rootpage from sqlite_schema where name = 'files'").get
    size = connection.execute("pragma page_size").get
    connection.close()
    overwrite(path, (root - 1) * size)


DAMAGES = {
    "deleted": lambda db: db.unlink(),
    "log deleted": lambda db: Path(f"{db}-wal").unlink(),
    "garbage": overwrite,
    "garbage inside": overwrite_table,
    "exchanged": lambda db: (db.with_name("x").write_bytes(b""), db.with_name("x").replace(db)),
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("how", DAMAGES)
def test_a_database_lost_under_it_is_made_anew_and_tombstones_stay(vault: Vault, how: str) -> None:
    sessions = some(vault, 3)
    gone = buried(vault)
    with Inside(vault, flags={"interval": 1.0}) as agent:
        agent.wait("watching")
        until(lambda: counts(vault)["tombstones"] == 1, "buried")
        assert vault.call("telemetry", "show").code == 0
        agent.settled()
        until(lambda: "checkpoint" not in agent._due, "what is lost now is what stands in the file")
        assert agent.workspace is not None
        before = agent.workspace.database
        DAMAGES[how](vault.db)
        new = Session().write(vault)

        def whole() -> bool:
            found = status(vault)
            return not found["trouble"] and found["counts"]["artifacts"] == 12 and found["counts"]["tombstones"] == 1

        until(whole, "made anew")
        agent.wait("watching")
        assert agent.workspace.database is not before
        assert Path(f"{vault.db}-wal").exists()
        assert len(vault.hits(new.word)) == len(vault.hits(sessions[0].word)) == 2
        gone.write(vault)
        until(lambda: not list(vault.memory.glob(f"*{gone.token}*")), "what was removed stays removed")
        assert not vault.hits(gone.word)
    assert agent.code == 0


@pytest.mark.usefixtures("quick")
def test_a_newer_schema_under_it_is_left_alone(vault: Vault) -> None:
    Session().write(vault)
    with Inside(vault) as agent:
        agent.wait("watching")
        newer = vault.db.with_name("newer")
        connection = apsw.Connection(str(newer))
        connection.execute("create table x(y); pragma application_id = 1397314393; pragma user_version = 999")
        connection.close()
        newer.replace(vault.db)
        agent.wait("degraded: the database has schema 999")
    assert not list(vault.state.glob("*.corrupt-*"))
    with pytest.raises(DatabaseError, match="schema 999"), Inside(vault) as agent:
        until(lambda: agent.failure, "refused at the start")


# ── what no event tells ──


@pytest.mark.usefixtures("quick")
def test_a_full_pass_that_finds_an_unannounced_change_sets_the_watch_anew(vault: Vault) -> None:
    Session().write(vault)
    with Inside(vault, flags={"interval": 1.0}) as agent:
        agent.wait("watching")
        agent.settled()
        watcher = agent.watcher
        assert watcher is not None
        watches = watcher._watches
        hear = watcher._inbox.add
        watcher._inbox.add = lambda _paths: None  # type: ignore[method-assign]
        lost = Session().write(vault)
        until(lambda: vault.hits(lost.word), "found by a full pass")
        until(lambda: watcher._watches is not watches, "set anew")
        watcher._inbox.add = hear  # type: ignore[method-assign]
        agent.settings = agent.settings.__class__(interval=3600.0)
        agent.wait("watching")


@pytest.mark.usefixtures("quick")
def test_announced_changes_never_make_it_doubt_the_watch(vault: Vault) -> None:
    Session().write(vault)
    with Inside(vault, flags={"interval": 1.0, "jitter": 0.0}) as agent:
        agent.wait("watching")
        agent.settled()
        watcher = agent.watcher
        assert watcher is not None
        watches = watcher._watches
        for _ in range(12):
            session = Session().write(vault)
            (vault / session.path("transcript")).unlink()
            time.sleep(0.13)
        assert watcher._watches is watches


@pytest.mark.usefixtures("quick")
def test_a_change_during_a_full_pass_is_no_reason_to_doubt_the_watch(vault: Vault) -> None:
    Session().write(vault)
    late: list[Session] = []

    class Slow(Inside):
        def _rolling(self) -> list[str]:
            if self.full_passes and len(late) < 2:
                late.append(Session().write(vault))
            return super()._rolling()

    with Slow(vault, flags={"interval": 1.0, "jitter": 0.0}) as agent:
        agent.wait("watching")
        watcher = agent.watcher
        assert watcher is not None
        watches = watcher._watches
        until(lambda: len(late) == 2 and vault.hits(late[-1].word), "changes that the pass saw first")
        agent.settled()
        assert watcher._watches is watches


@pytest.mark.usefixtures("quick")
def test_reading_content_anew_is_no_change(vault: Vault) -> None:
    some(vault, 3)
    with Inside(vault, flags={"interval": 1.0, "reread_days": 0.00001}) as agent:
        agent.wait("watching")
        agent.settings = agent.settings.__class__(interval=1.0, reread_days=0.00001)
        agent.settled()
        watcher = agent.watcher
        assert watcher is not None
        watches, passes = watcher._watches, agent.full_passes
        until(lambda: agent.full_passes > passes + 1, "content was read anew")
        assert any(request.reread for request in agent.passes)
        assert watcher._watches is watches


@pytest.mark.usefixtures("quick")
def test_waking_from_sleep_it_looks_at_everything(vault: Vault) -> None:
    Session().write(vault)
    with Inside(vault) as agent:
        agent.wait("watching")
        agent.settled()
        passes = agent.full_passes
        wall, monotonic = agent._clocks
        agent._clocks = wall - 8 * 3600, monotonic  # eight hours that the one clock did not count
        until(lambda: agent.full_passes > passes, "a full pass")
        agent.settled()
        assert agent.full_passes == passes + 1


@pytest.mark.usefixtures("quick")
def test_its_own_writes_never_wake_it_again_and_again(vault: Vault) -> None:
    some(vault, 3)
    vault.session(5, agent_id="researcher", captured_at=Session().who["captured_at"])
    with Inside(vault) as agent:
        agent.wait("watching")
        agent.settled()
        Session().write(vault)
        count = agent.settled(1.2)
        assert (vault / "agents" / "researcher" / "MEMORY.md").exists()
        time.sleep(3)
        assert len(agent.passes) == count


@pytest.mark.usefixtures("quick")
def test_another_programs_busy_file_makes_no_work(vault: Vault) -> None:
    Session().write(vault)
    with (vault / "memory" / "memories.db-wal").open("wb", buffering=0) as busy, Inside(vault) as agent:
        busy.write(b"x")
        agent.wait("watching")
        count = agent.settled(1.0)
        for _ in range(30):
            busy.write(b"x" * 100)
            time.sleep(0.05)
        time.sleep(0.5)
        assert len(agent.passes) == count
        assert verdicts(vault)["memory/memories.db-wal"] == ("ignored", "foreign-name")


@pytest.mark.usefixtures("quick")
def test_changes_without_an_end_starve_nothing(vault: Vault) -> None:
    doomed = Session().write(vault)
    note = vault / "memory" / "note.md"
    with Inside(vault, flags={"debounce": 0.1, "longest_wait": 0.3, "settle_seconds": 0.5}) as agent:
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
            until(lambda: verdicts(vault).get(doomed.path("summary")) == ("violation", "vanished"), "confirmed", 20)
            assert agent.workspace is not None
            database = agent.workspace.database
            until(lambda: "checkpoint" not in agent._due, "a checkpoint", 20)
            assert database.path
        finally:
            ended.set()
            thread.join()
    assert not note.exists()


@pytest.mark.skipif(not LINUX, reason="prlimit is Linux's")
def test_a_heartbeat_grows_old_only_when_the_agent_does_nothing(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "BEAT", 0.2)
    monkeypatch.setattr(presence, "TOUCH", 0.05)
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


# ── the service manager ──


def test_signs_of_life_come_from_the_loop_that_works(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Session().write(vault)
    stuck, release = threading.Event(), threading.Event()
    really = reconcile.run_pass

    def hanging(workspace: Any, request: Any) -> Any:
        if stuck.is_set():
            release.wait(30)
        return really(workspace, request)

    monkeypatch.setattr(reconcile, "run_pass", hanging)
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
            time.sleep(1.0)
            silent = beats()
            time.sleep(0.6)
            assert beats() == silent, "a loop that hangs says nothing"
            release.set()
            until(lambda: beats() > silent + 3, "alive again")


# ── a live Signet daemon ──


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


def signet_runs(vault: Vault, pid: int) -> None:
    (vault / ".daemon").mkdir(exist_ok=True)
    (vault / ".daemon" / "pid").write_text(f"{pid}\n")


@pytest.mark.usefixtures("quick")
def test_a_live_signet_daemon_holds_back_pages_until_it_ends(vault: Vault, sleeper: subprocess.Popen[bytes]) -> None:
    session = Session().write(vault)
    manifest = (vault / session.path("manifest")).read_bytes()
    signet_runs(vault, sleeper.pid)
    with Inside(vault) as agent:
        agent.wait("held: signet daemon")
        found = status(vault)
        assert str(sleeper.pid) in found["trouble"]
        assert "takeover" in vault.call("status").out
        assert vault.hits(session.word), "the index is kept true"
        other = vault / "memory" / "a note.md"
        other.write_text("somebody's")
        until(lambda: "memory/a note.md" in verdicts(vault), "a pass")
        assert agent.state == "held: signet daemon"
        assert not (vault / "MEMORY.md").exists()
        assert (vault / session.path("manifest")).read_bytes() == manifest
        count = agent.settled(1.0)
        time.sleep(1.5)
        assert len(agent.passes) == count, "holding back is no work"

        sleeper.kill()
        sleeper.wait()
        agent.wait("watching")
        assert session.sentence in page(vault)


@pytest.mark.usefixtures("quick")
def test_a_signet_daemon_that_comes_later_is_noticed(vault: Vault, sleeper: subprocess.Popen[bytes]) -> None:
    Session().write(vault)
    with Inside(vault) as agent:
        agent.wait("watching")
        agent.settled()
        before = page(vault)
        signet_runs(vault, sleeper.pid)
        agent.wait("held: signet daemon")
        new = Session().write(vault)
        until(lambda: vault.hits(new.word), "indexed")
        assert page(vault) == before


LEAVES = 30 * 86_400  # a session's time in the window, in seconds


@pytest.mark.usefixtures("quick")
def test_a_session_leaves_the_page_when_its_time_is_over_without_any_event(vault: Vault) -> None:
    stays, goes = Session(), Session()
    goes.who["captured_at"] = ago(seconds=LEAVES - 4)
    for session in (stays, goes):
        session.write(vault)
    with Inside(vault) as agent:
        agent.wait("watching")
        assert goes.sentence in page(vault)
        until(lambda: goes.sentence not in page(vault), "out of the window", 20)
        assert stays.sentence in page(vault)
        assert len(agent.passes) < 6


@pytest.mark.usefixtures("quick")
def test_a_page_that_is_due_but_held_back_makes_no_work(vault: Vault, sleeper: subprocess.Popen[bytes]) -> None:
    goes = Session()
    goes.who["captured_at"] = ago(seconds=LEAVES - 2)
    goes.write(vault)
    with Inside(vault) as agent:
        agent.wait("watching")
        signet_runs(vault, sleeper.pid)
        agent.wait("held: signet daemon")
        time.sleep(2)
        count = agent.settled()
        time.sleep(1.6)
        assert len(agent.passes) == count
        assert goes.sentence in page(vault)


def test_a_person_may_take_over_from_signet(vault: Vault, start: Start, sleeper: subprocess.Popen[bytes]) -> None:
    session = Session().write(vault)
    signet_runs(vault, sleeper.pid)
    agent = start()
    agent.wait("held: signet daemon")
    (vault / "signet-sync.toml").write_text("[projection]\ntakeover = true\n")
    agent.send(signal.SIGHUP)
    agent.wait("watching")
    assert session.sentence in page(vault)


# ── one agent ──


def test_a_second_one_in_the_same_process_is_refused(vault: Vault) -> None:
    Session().write(vault)
    with Inside(vault) as agent:
        agent.wait("watching")
        with pytest.raises(AnotherAgent):
            room.Daemon(Options(str(vault.root), None, {})).run()
        assert heartbeat(vault) is not None
        assert agent.state == "watching"
    assert socket.gethostname()
