"""The agent when files are gone, nothing can be written, or a Signet daemon lives: it drops nothing and recovers."""

from __future__ import annotations

import random
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import agents
import apsw
import artifacts_fixture as made
import pytest
from agents import LINUX, Inside, Session, page, some, status, until, verdicts
from workbench import Vault, sampled

from signet_sync.app import scheduler
from signet_sync.errors import WorkspaceError
from signet_sync.storage import state_dir
from signet_sync.storage.database.connection import Database, is_suspect
from signet_sync.storage.database.tables import TABLES
from signet_sync.sync import database as sync_database
from signet_sync.sync import engine

Start = Any
start, quick, sleeper = agents.start, agents.quick, agents.sleeper


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("how", ["moved away", "emptied"])
def test_without_memory_it_halts_drops_nothing_and_goes_on_when_it_is_back(vault: Vault, how: str) -> None:
    sessions = some(vault)
    aside = vault.root.parent / "aside"
    with Inside(vault) as agent:
        agent.wait("watching")
        shutil.copytree(vault.memory, aside)
        if how == "moved away":
            shutil.rmtree(aside)
            vault.memory.rename(aside)
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

        if how == "emptied":
            for file in sorted(aside.iterdir()):
                file.rename(vault.memory / file.name)
        else:
            aside.rename(vault.memory)
        agent.wait("watching")
        until(lambda: "signet-sync is halted" not in page(vault), "the warning goes")
        assert status(vault)["counts"]["artifacts"] == 27
        assert status(vault)["counts"]["violations"] == 0
        until(lambda: "passes go on" in (vault.state / "logs/signet-sync.log").read_text(), "a line")
        new = Session().write(vault)
        until(lambda: vault.hits(new.word), "the watch works")


@pytest.mark.usefixtures("quick")
def test_a_file_that_is_away_for_a_moment_is_not_missed_whatever_else_happens(vault: Vault) -> None:
    sessions = some(vault, 2)
    path = sessions[0].path("summary")
    with Inside(vault, settle_seconds=600.0) as agent:
        agent.wait("watching")
        agent.settled()
        raw = (vault / path).read_bytes()
        (vault / path).unlink()
        until(lambda: path in agent.work._again, "seen")
        agent.work.everything = True
        new = Session().write(vault)
        until(lambda: vault.hits(new.word), "passes over others, and over everything")
        assert verdicts(vault)[path] == ("indexed", "")
        (vault / path).write_bytes(raw)
        until(lambda: path not in agent.work._again, "forgotten")
        agent.settled()
        assert verdicts(vault)[path] == ("indexed", "")
        assert status(vault)["counts"]["violations"] == 0


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
    assert found["running"]
    resource.prlimit(agent.process.pid, full, (resource.RLIM_INFINITY, hard))
    until(lambda: len(vault.hits(new.word)) == 2 and new.sentence in page(vault), "recovered")
    agent.passed()
    assert agent.end() == 0


@pytest.mark.usefixtures("quick")
def test_it_ends_though_a_lock_is_held(vault: Vault) -> None:
    Session().write(vault)
    with ExitStack() as stack:
        with Inside(vault) as agent:
            agent.wait("watching")
            agent.settled()
            stack.enter_context(state_dir.workspace_lock(state_dir.locate(str(vault.root))))
            blocker = apsw.Connection(str(vault.db))
            stack.callback(blocker.close)
            blocker.execute("begin immediate")
            Session().write(vault)
        assert agent.code == 0


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


def failing(monkeypatch: pytest.MonkeyPatch, *errors: Exception | None) -> list[Exception | None]:
    """The first passes of the agent raise these errors, every further one is as usual; gives those that are left."""
    really, left = engine.run_pass, [*errors]

    def run_pass(workspace: Any, request: Any) -> Any:
        if error := left.pop(0) if left else None:
            raise error
        return really(workspace, request)

    monkeypatch.setattr(scheduler, "LONGEST_BACKOFF", 0.1)
    monkeypatch.setattr(engine, "run_pass", run_pass)
    return left


ERRORS = [ValueError("a bug"), apsw.ConnectionClosedError("closed"), apsw.IOError("disk"), MemoryError(), OSError(5)]


@pytest.mark.usefixtures("quick")
def test_no_error_of_a_pass_ends_the_agent(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    left = failing(monkeypatch, *ERRORS)
    with Inside(vault) as agent:
        agent.wait("degraded")
        new = Session().write(vault)
        agent.wait("watching")
        assert not left
        assert vault.hits(new.word)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("errors", "rebuilding"),
    [
        ([ValueError("bug")], [2]),
        ([ValueError("bug"), WorkspaceError("", code="busy")], [2, 3]),
        ([OSError(5, "")], []),
    ],
)
def test_after_an_error_that_nobody_thought_of_all_derived_rows_are_built_anew_once(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, errors: list[Exception], rebuilding: list[int]
) -> None:
    failing(monkeypatch, None, *errors)
    with Inside(vault) as agent:
        agent.wait("watching")
        new = Session().write(vault)
        until(lambda: vault.hits(new.word), "indexed by the pass after those that failed")
        agent.settled()
        assert [number for number, request in enumerate(agent.passes) if request.rebuild] == rebuilding
        assert agent.passes[1 + len(errors)].paths is None


@pytest.mark.usefixtures("quick")
def test_after_an_error_that_may_come_from_damage_every_page_of_the_database_is_checked(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, checks = sync_database.examine, list[Any]()

    def examine(database: Database, tables: Any = TABLES) -> None:
        checks.append(tables)
        really(database, tables)

    for place in (sync_database, engine):
        monkeypatch.setattr(place, "examine", examine)
    failing(monkeypatch, None, apsw.ConstraintError("an index that disagrees with its table"))
    with Inside(vault) as agent:
        agent.wait("watching")
        assert TABLES not in checks
        new = Session().write(vault)
        until(lambda: vault.hits(new.word), "at work again")
        assert checks.count(TABLES) == 1
        assert not is_suspect(str(vault.db)), "it was found sound"


# ── what others do: a database lost under it, a live Signet daemon ──


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
    "deleted": lambda db: db.unlink(), "log deleted": lambda db: Path(f"{db}-wal").unlink(), "garbage": overwrite_table,
    "exchanged": lambda db: (db.with_name("x").write_bytes(b""), db.with_name("x").replace(db)),
}  # fmt: skip


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("how", sampled(DAMAGES, 2))
def test_a_database_lost_under_it_is_made_anew_and_tombstones_stay(vault: Vault, how: str) -> None:
    sessions = some(vault, 3)
    gone = buried(vault)
    with Inside(vault, interval=0.4) as agent:
        agent.wait("watching")
        until(lambda: status(vault)["counts"]["tombstones"] == 1, "buried")
        assert vault.call("status").code == 0
        until(lambda: "checkpoint" not in agent.work._at, "what is lost now is what stands in the file")
        before = agent.work.workspace.database
        DAMAGES[how](vault.db)
        new = Session().write(vault)

        def whole() -> bool:
            found = status(vault)
            return not found["trouble"] and found["counts"]["artifacts"] == 12 and found["counts"]["tombstones"] == 1

        until(whole, "made anew")
        agent.wait("watching")
        assert agent.work.workspace.database is not before
        assert Path(f"{vault.db}-wal").exists()
        assert len(vault.hits(new.word)) == len(vault.hits(sessions[0].word)) == 2
        gone.write(vault)
        until(lambda: not list(vault.memory.glob(f"*{gone.token}*")), "what was removed stays removed")
        assert not vault.hits(gone.word)
    assert agent.code == 0


def signet_runs(vault: Vault, pid: int) -> None:
    (vault / ".daemon").mkdir(exist_ok=True)
    (vault / ".daemon" / "pid").write_text(f"{pid}\n")


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("ends", [True, False])
def test_a_live_signet_daemon_holds_back_pages_until_it_ends_or_a_person_takes_over(
    vault: Vault, sleeper: subprocess.Popen[bytes], ends: bool
) -> None:
    session = Session().write(vault)
    manifest = (vault / session.path("manifest")).read_bytes()
    signet_runs(vault, sleeper.pid)
    with Inside(vault) as agent:
        agent.wait("held: signet daemon")
        until(lambda: str(sleeper.pid) in (status(vault)["trouble"] or ""), "told")
        assert "takeover" in vault.call("status").out
        assert vault.hits(session.word), "the index is kept true"
        other = vault / "memory" / "a note.md"
        other.write_text("somebody's")
        until(lambda: "memory/a note.md" in verdicts(vault), "a pass")
        assert agent.state == "held: signet daemon"
        assert not (vault / "MEMORY.md").exists()
        assert (vault / session.path("manifest")).read_bytes() == manifest
        agent.settled(1.5)  # holding back is no work

        if ends:
            sleeper.kill()
            sleeper.wait()
        else:
            (vault / "signet-sync.toml").write_text("[projection]\ntakeover = true\n")
        agent.wait("watching")
        assert session.sentence in page(vault)
