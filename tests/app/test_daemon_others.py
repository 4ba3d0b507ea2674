"""The agent and what others do: a database that is lost under it, a live Signet daemon."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import agents
import apsw
import artifacts_fixture as made
import pytest
from agents import Inside, Session, ago, counts, page, some, status, until, verdicts
from transcript_builder import waited
from workbench import Vault, sampled

from signet_sync.pages import others

Start = Any
vault, start, quick, sleeper = agents.vault, agents.start, agents.quick, agents.sleeper


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
        until(lambda: counts(vault)["tombstones"] == 1, "buried")
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
def test_a_live_signet_daemon_holds_back_pages_until_it_ends(vault: Vault, sleeper: subprocess.Popen[bytes]) -> None:
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

        sleeper.kill()
        sleeper.wait()
        agent.wait("watching")
        assert session.sentence in page(vault)


@pytest.mark.usefixtures("quick")
def test_a_page_of_a_signet_that_has_gone_is_taken_back_after_a_while(vault: Vault) -> None:
    session = Session().write(vault)
    theirs = "<!-- generated 2026-03-29 12:05 -->\n# Working Memory Summary\n- a <!-- signet:end --> b\n- c\n"
    with Inside(vault) as agent:
        agent.wait("watching")
        agent.settled()
        assert session.sentence in page(vault)
        (vault / "MEMORY.md").write_text(theirs)
        agent.wait("held: signet daemon")
        assert page(vault) == theirs
        long_ago = time.time() - others.HOLD - 1
        os.utime(vault / "MEMORY.md", (long_ago, long_ago))
        agent.wait("watching")
        assert session.sentence in page(vault) and "- c" not in page(vault)
        assert [kept.read_text() for kept in vault.root.glob("MEMORY.signet-*.md")] == [theirs]
        assert not list(vault.root.glob("MEMORY.user-*.md"))


LEAVES = 30 * 86_400  # a session's time in the window, in seconds


@pytest.mark.usefixtures("quick")
def test_a_session_leaves_the_page_when_its_time_is_over_without_any_event(vault: Vault) -> None:
    stays = Session().write(vault)
    with Inside(vault) as agent:
        agent.wait("watching")
        for left in (2, 20, 200):  # seconds in which a busy machine has to write the page
            goes = Session()
            goes.who["captured_at"] = ago(seconds=LEAVES - left)
            goes.write(vault)
            if waited(lambda row=f"| {goes.sentence}": row in page(vault), left):
                break
        until(lambda: f"| {goes.sentence}" not in page(vault), "out of the window", 300)
        assert stays.sentence in page(vault)


def test_a_person_may_take_over_from_signet(vault: Vault, start: Start, sleeper: subprocess.Popen[bytes]) -> None:
    session = Session().write(vault)
    signet_runs(vault, sleeper.pid)
    agent = start()
    agent.wait("held: signet daemon")
    (vault / "signet-sync.toml").write_text("[projection]\ntakeover = true\n")
    agent.send(signal.SIGHUP)
    agent.wait("watching")
    assert session.sentence in page(vault)
