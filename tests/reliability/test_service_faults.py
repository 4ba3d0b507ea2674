"""The agent as a service: told to end at any instant, killed by a file, stalled, short of memory, fenced in."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import Agent, Session, heartbeat, manager, page, some
from workbench import Vault

from benchmarks.corpus import write_corpus
from signet_sync.app.workspace import open_to_write
from signet_sync.errors import Interrupted
from signet_sync.settings.model import Settings
from signet_sync.storage import state_dir
from signet_sync.storage.locations import now_us
from signet_sync.sync.engine import run_pass
from signet_sync.sync.workspace import Request

Start = Any
start = agents.start
STRACE = shutil.which("strace")


# ── told to end ──


def ends_well(vault: Vault, agent: Agent, number: signal.Signals, moment: str) -> None:
    """Sends the signal and holds the end to what is promised."""
    code = agent.end(number)
    said = agent.output().strip()
    # While Python and our modules are loaded nobody answers a signal: it ends as Python does, and nothing was begun.
    unborn = "INFO" not in said and "signet_sync/app/" not in said
    assert code == 0 or unborn, (moment, number, code, said)
    assert unborn or "Traceback" not in said, (moment, said)
    folder = state_dir.locate(str(vault.root))
    assert not state_dir.run_lock_holder(folder), moment
    assert heartbeat(vault) is None or code != 0, moment
    assert not list(vault.root.glob(".signet/tmp/*")), moment
    if vault.db.exists():
        with vault.database() as database:
            assert list(database.problems()) == [], moment


class Moments:
    """A vault to which sessions are added while agents come and go."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault
        self.sessions = some(vault, 3)

    def storm(self, count: int = 5) -> None:
        self.sessions += [Session().write(self.vault) for _ in range(count)]

    def whole(self) -> None:
        """Left alone for one pass, everything is there that was ever written."""
        assert self.vault.call("reindex", "--json").code == 0
        found = self.vault.rows("select count(*) from files where verdict = 'indexed'")
        assert found == [(3 * len(self.sessions),)]
        text = page(self.vault)
        assert all(session.sentence in text for session in self.sessions[-5:])


def at(agent: Agent, moment: str, storm: Callable[[], None]) -> None:
    """Waits for a moment in an agent's life: `start 0.2`, `first pass`, `storm 0.1`, `idle`, `end`."""
    name, _, after = moment.partition(" ")
    if name == "begun":
        agent.wait("reconciling", "watching")
    elif name in ("idle", "storm", "end"):
        agent.passed()
    if name == "storm":
        storm()
    if name == "end":
        agent.send(signal.SIGTERM)
    if after:
        time.sleep(float(after))


FEW = ["start 0.1", "begun", "storm 0.1"]
MANY = [
    *(f"start {number * 0.06:.2f}" for number in range(16)), *(f"begun {number * 0.04:.2f}" for number in range(5)),
    *(f"storm {number * 0.06:.2f}" for number in range(10)), "idle",
    *(f"end {number * 0.01:.2f}" for number in range(8)),
]  # fmt: skip


@pytest.mark.parametrize("moments", [FEW, pytest.param(MANY, marks=pytest.mark.slow)], ids=["few", "forty"])
def test_told_to_end_at_any_moment_it_ends_with_nothing_torn(vault: Vault, start: Start, moments: list[str]) -> None:
    life = Moments(vault)
    for number, moment in enumerate(moments):
        agent = start()
        at(agent, moment, lambda: life.storm(2))
        ends_well(vault, agent, [signal.SIGTERM, signal.SIGINT][number % 2], moment)
        agent.close()
    life.whole()


# ── a loop that stalls ──


def test_what_is_made_of_files_when_all_are_read_gives_signs_of_life_and_hears_the_end(vault: Vault) -> None:
    """The graph of many sessions takes longer than their reading: neither silent nor deaf meanwhile."""
    write_corpus(str(vault.root), 30)
    read = 30 * 3
    signs: list[int] = []

    def first(*, to_end: Callable[[], bool]) -> None:
        signs.clear()
        with open_to_write(str(vault.root), Settings()) as workspace:
            request = Request(now_us=now_us(), progress=lambda done, _: signs.append(done), should_stop=to_end)
            run_pass(workspace, request)

    with pytest.raises(Interrupted):
        first(to_end=lambda: signs.count(read) > 1)
    assert vault.rows("select count(*) from files") == [(read,)], "what was read is kept"
    assert vault.rows("select count(*) from outbox") != [(0,)], "in the midst of it"
    first(to_end=lambda: False)
    assert vault.rows("select count(*) from outbox") == [(0,)] and vault.dump() == vault.dump_from_scratch()


# ── short of everything ──


@pytest.mark.slow
@pytest.mark.skipif(STRACE is None, reason="strace is not here to see system calls")
def test_nothing_ever_speaks_to_a_network(vault: Vault, tmp_path: Path) -> None:
    """Every call of the network family, of every process; local sockets are how the service manager is told."""
    assert STRACE is not None
    session = Session().write(vault)
    trace = tmp_path / "trace"
    seen = calls = 0
    with manager(tmp_path) as (address, _):
        for words in commands_of_a_day(session):
            done = vault.spawn(
                *words, prefix=[STRACE, "-f", "-qq", "-e", "trace=%network", "-o", str(trace)],
                environ={"NOTIFY_SOCKET": address, "SIGNET_HISTORY_ENABLED": "true"},
            )  # fmt: skip
            if "ptrace" in done.err:
                pytest.skip("no process may be traced here")
            assert done.code == 0, done
            lines = trace.read_text().splitlines()
            other = [line for line in lines if "AF_" in line and "AF_UNIX" not in line]
            assert other == [], words
            seen += len(lines)
            calls += 1


def commands_of_a_day(session: Session) -> Iterator[list[str]]:
    """A day of commands, one after the other; each ends with 0."""
    who = session.who["session_id"]
    yield from (
        ["reindex"], ["check"], ["status"], ["recall", "--words", session.word], ["recall", session.word],
        ["remember", "Ada wants short answers.", "--session", who], ["dream"], ["entity", "create", "user", "Ada"],
        ["checkpoint", "first"], ["context"], ["open", who], ["expand", who],
        ["remove", who, "--reason", "asked for", "--yes"], ["reindex", "--full"], ["status"],
    )  # fmt: skip
