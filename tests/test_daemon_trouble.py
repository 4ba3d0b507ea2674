"""The agent when something is wrong: it names its state, drops nothing, does not spin, and recovers by itself."""

from __future__ import annotations

import os
import random
import shutil
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
from agents import LINUX, Agent, Inside, Session, heartbeat, manager, page, seconds, status, until, verdicts
from workbench import Vault

from signet_sync import state
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


# ── files that are all gone at once ──


def some(vault: Vault, count: int = 9) -> list[Session]:
    return [Session().write(vault) for _ in range(count)]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("how", ["deleted", "moved away", "emptied"])
def test_without_memory_it_halts_drops_nothing_and_goes_on_when_it_is_back(vault: Vault, how: str) -> None:
    sessions = some(vault)
    aside = vault.root.parent / "aside"
    with Inside(vault) as agent:
        agent.wait("watching")
        shutil.copytree(vault.memory, aside)
        if how == "moved away":
            shutil.rmtree(aside)
            vault.memory.rename(aside)
        elif how == "deleted":
            shutil.rmtree(vault.memory)
        else:
            for file in vault.memory.iterdir():
                file.unlink()
        agent.wait("halted: cliff")
        found = status(vault)
        assert (found["counts"]["artifacts"], found["counts"]["violations"]) == (27, 0)
        assert len(vault.hits(sessions[0].word)) == 2
        assert "signet-sync is halted" in page(vault)
        assert sessions[0].sentence in page(vault)
        assert not vault.memory.exists() or how == "emptied", "it makes no folder in its place"

        if vault.memory.exists():
            vault.memory.rmdir()
        aside.rename(vault.memory)
        agent.wait("watching")
        until(lambda: "signet-sync is halted" not in page(vault), "the warning goes")
        assert counts(vault)["artifacts"] == 27
        assert counts(vault)["violations"] == 0
        new = Session().write(vault)
        until(lambda: vault.hits(new.word), "the watch works")


def test_started_without_memory_it_halts(vault: Vault, start: Start) -> None:
    some(vault)
    vault.reindex(now="2026-03-29T12:00:00.000Z")
    aside = vault.root.parent / "aside"
    vault.memory.rename(aside)
    agent = start()
    found = agent.wait("halted: cliff")
    assert found["counts"]["artifacts"] == 27
    assert vault.call("status", "--check").code == 1
    assert "bring them back" in vault.call("status").out
    aside.rename(vault.memory)
    agent.passed()
    assert counts(vault)["artifacts"] == 27
    assert agent.end()[0] == 0


@pytest.mark.usefixtures("quick")
def test_a_person_may_accept_the_removals_beside_a_halted_agent(vault: Vault) -> None:
    some(vault)
    with Inside(vault) as agent:
        agent.wait("watching")
        shutil.rmtree(vault.memory)
        agent.wait("halted: cliff")
        assert vault.call("reindex", "--accept-removals", "--json").code == 0
        agent.wait("watching")
        assert counts(vault)["artifacts"] == 0


# ── the root ──


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
    assert agent.end()[0] == 0
    assert not list(Path(os.environ["SIGNET_STATE"]).glob("*/heartbeat.json"))


def test_stopped_while_it_waits_it_leaves_nothing(vault: Vault, start: Start) -> None:
    shutil.rmtree(vault.root)
    agent = start()
    agent.wait("waiting: workspace")
    code, took = agent.end()
    assert code == 0
    assert took < seconds(2.0)
    assert not vault.root.exists()
    assert not list(Path(os.environ["SIGNET_STATE"]).glob("*/heartbeat.json"))


@pytest.mark.usefixtures("quick")
def test_a_root_that_goes_and_comes_back_is_followed(vault: Vault) -> None:
    session = Session().write(vault)
    away = vault.root.parent / "away"
    with Inside(vault) as agent:
        agent.wait("watching")
        vault.root.rename(away)
        agent.wait("waiting: workspace")
        new = Session().write(Vault(away))
        assert not vault.root.exists()
        away.rename(vault.root)
        agent.wait("watching")
        until(lambda: vault.hits(new.word), "what happened in between")
        assert vault.hits(session.word)


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


# ── the database ──


def buried(vault: Vault) -> Session:
    """A session that a tombstone removed, whose tombstone file is lost as well: only the database remembers."""
    session = Session().write(vault)
    vault.put(made.tombstone(session_id=session.who["session_id"]), "memory/tombstones")
    return session


def overwrite(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.write(random.Random(1).randbytes(path.stat().st_size))


DAMAGES = {
    "deleted": lambda db: db.unlink(),
    "all deleted": lambda db: [Path(f"{db}{suffix}").unlink(missing_ok=True) for suffix in ("-wal", "-shm", "")],
    "log deleted": lambda db: Path(f"{db}-wal").unlink(),
    "garbage": overwrite,
    "a text": lambda db: db.write_text("not a database any more\n" * 1000),
    "exchanged": lambda db: (db.with_name("x").write_bytes(b""), db.with_name("x").replace(db)),
}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("how", DAMAGES)
def test_a_database_lost_under_it_is_made_anew_and_tombstones_stay(vault: Vault, how: str) -> None:
    sessions = some(vault, 3)
    gone = buried(vault)
    with Inside(vault) as agent:
        agent.wait("watching")
        until(lambda: counts(vault)["tombstones"] == 1, "buried")
        assert vault.call("telemetry", "show").code == 0
        agent.settled()
        time.sleep(2.5)  # the checkpoint: what is lost then is what stands in the file
        DAMAGES[how](vault.db)
        new = Session().write(vault)

        def whole() -> bool:
            found = status(vault)
            return not found["trouble"] and found["counts"]["artifacts"] == 12 and found["counts"]["tombstones"] == 1

        until(whole, "made anew")
        agent.wait("watching")
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


# ── space, permissions, locks ──


@pytest.mark.skipif(not LINUX, reason="prlimit is Linux's")
def test_with_no_room_to_write_it_says_so_and_recovers_by_itself(vault: Vault, start: Start) -> None:
    import resource

    some(vault, 2)
    agent = start()
    agent.passed()
    full = resource.RLIMIT_FSIZE
    _, hard = resource.prlimit(agent.process.pid, full)
    resource.prlimit(agent.process.pid, full, (4096, hard))
    new = Session().write(vault)
    found = agent.wait("degraded")
    assert vault.call("status", "--check").code == 1
    begin = time.monotonic()
    cpu = sum(int(x) for x in Path(f"/proc/{agent.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13])
    time.sleep(2)
    after = sum(int(x) for x in Path(f"/proc/{agent.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13])
    assert (after - cpu) / os.sysconf("SC_CLK_TCK") < 0.5 * (time.monotonic() - begin), "it does not spin"
    assert found["running"]
    resource.prlimit(agent.process.pid, full, (resource.RLIM_INFINITY, hard))
    until(lambda: len(vault.hits(new.word)) == 2 and new.sentence in page(vault), "recovered")
    agent.passed()
    assert agent.end()[0] == 0


@pytest.mark.skipif(not LINUX, reason="prlimit is Linux's")
def test_with_no_room_at_its_start_it_waits(vault: Vault, start: Start) -> None:
    import resource

    some(vault, 2)
    vault.reindex()
    vault.db.unlink()
    held = (1024, resource.RLIM_INFINITY)
    soft = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, held)
    try:
        agent = start()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, soft)
    time.sleep(seconds(1.5))
    assert agent.process.poll() is None, agent.output()
    assert "stopped" not in agent.output()
    resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    agent.passed()
    assert counts(vault)["artifacts"] == 6


@pytest.mark.usefixtures("quick")
def test_a_page_that_cannot_be_written_is_told_and_written_later(vault: Vault) -> None:
    session = Session().write(vault)
    (vault / "MEMORY.md").mkdir()
    with Inside(vault) as agent:
        agent.wait("degraded: MEMORY.md: the page could not be written")
        assert vault.hits(session.word), "the index does not wait for the page"
        (vault / "MEMORY.md").rmdir()
        agent.wait("watching")
        assert session.sentence in page(vault)


@pytest.mark.usefixtures("quick")
def test_a_ledger_page_that_cannot_be_written_is_written_later(vault: Vault) -> None:
    Session().write(vault)
    with Inside(vault) as agent:
        agent.wait("watching")
        shutil.rmtree(vault / "ledger")
        (vault / "ledger").write_text("in the way")
        new = Session().write(vault)
        agent.wait("degraded")
        (vault / "ledger").unlink()
        agent.wait("watching")
        assert new.sentence in "".join(file.read_text() for file in (vault / "ledger").rglob("*.md"))
        assert new.sentence in page(vault)


@pytest.mark.usefixtures("quick")
def test_a_pass_of_another_command_is_waited_for_without_a_word(vault: Vault) -> None:
    Session().write(vault)
    with Inside(vault) as agent:
        agent.wait("watching")
        agent.settled()
        with state.workspace_lock(state.locate(str(vault.root))):
            new = Session().write(vault)
            time.sleep(1.5)
            assert agent.state == "watching"
            assert not vault.hits(new.word)
        until(lambda: vault.hits(new.word), "as soon as it may")


def test_it_ends_in_time_whoever_holds_a_lock(vault: Vault, start: Start) -> None:
    Session().write(vault)
    agent = start()
    agent.passed()
    blocker = apsw.Connection(str(vault.db))
    with state.workspace_lock(state.locate(str(vault.root))):
        Session().write(vault)
        time.sleep(0.8)
        blocker.execute("begin immediate")
        code, took = agent.end()
    assert code == 0
    assert took < seconds(2.0)
    blocker.close()


@pytest.mark.usefixtures("quick")
def test_a_database_locked_by_another_program_is_told_and_waited_for(vault: Vault) -> None:
    Session().write(vault)
    with Inside(vault) as agent:
        agent.wait("watching")
        agent.settled()
        blocker = apsw.Connection(str(vault.db))
        blocker.execute("begin immediate")
        new = Session().write(vault)
        agent.wait("degraded: the database is locked by another program")
        blocker.execute("rollback")
        blocker.close()
        agent.wait("watching")
        assert vault.hits(new.word)


# ── errors that nobody thought of ──


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "error",
    [ValueError("a bug"), apsw.ConnectionClosedError("closed"), apsw.IOError("disk"), MemoryError(), OSError(5)],
)
def test_no_error_of_a_pass_ends_the_agent_or_makes_it_spin(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(room, "LONGEST_BACKOFF", 60.0)
    Session().write(vault)
    tries: list[float] = []
    really = reconcile.run_pass

    def failing(workspace: Any, request: Any) -> Any:
        tries.append(time.monotonic())
        if len(tries) <= 2:
            raise error
        return really(workspace, request)

    monkeypatch.setattr(reconcile, "run_pass", failing)
    with Inside(vault) as agent:
        agent.wait("degraded")
        new = Session().write(vault)
        agent.wait("watching")
        assert vault.hits(new.word)
    gaps = [later - earlier for earlier, later in zip(tries, tries[1:], strict=False)]
    assert gaps[0] >= 0.9
    assert gaps[1] >= 1.9, "growing patience"


def test_stop_is_heard_while_it_waits_after_an_error(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_workspace: Any, _request: Any) -> Any:
        raise ValueError("always")

    monkeypatch.setattr(reconcile, "run_pass", failing)
    with Inside(vault) as agent:
        agent.wait("degraded: unexpected ValueError")
        time.sleep(1.2)
        begin = time.monotonic()
        agent.stop()
        until(lambda: agent.code is not None, "ended")
        assert time.monotonic() - begin < seconds(2.0)


@pytest.mark.slow
def test_a_permanent_error_does_not_fill_the_log(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(_workspace: Any, _request: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(room, "LONGEST_BACKOFF", 0.01)
    monkeypatch.setattr(reconcile, "run_pass", failing)
    with Inside(vault) as agent:
        agent.wait("degraded")
        time.sleep(5)
    assert (vault.state / "logs" / "signet-sync.log").stat().st_size < 10_000


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
        for _ in range(20):
            session = Session().write(vault)
            (vault / session.path("transcript")).unlink()
            time.sleep(0.13)
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
        until(lambda: agent.full_passes > passes + 2, "content was read anew")
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
        count = agent.settled()
        assert (vault / "agents" / "researcher" / "MEMORY.md").exists()
        time.sleep(4)
        assert len(agent.passes) == count


@pytest.mark.usefixtures("quick")
def test_another_programs_busy_file_makes_no_work(vault: Vault) -> None:
    Session().write(vault)
    with (vault / "memory" / "memories.db-wal").open("wb", buffering=0) as busy, Inside(vault) as agent:
        busy.write(b"x")
        agent.wait("watching")
        count = agent.settled()
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
        count = agent.settled()
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
