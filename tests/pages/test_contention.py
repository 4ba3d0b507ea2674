"""Who sleeps too long, who is killed, who is overtaken: real processes that stop in the middle of a write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from workbench import NOW, ROOT, Vault

# Stops itself when it makes the temporary file of what it is about to publish: it holds its lease or lock then, and has
# read what it wants to replace.
STOPS = """
import os, signal, sys
from signet_sync.storage import state_dir as state
from signet_sync.sync import engine
from signet_sync.sync.request import Request
from signet_sync.app.workspace import opened
from signet_sync.settings.model import Settings
from signet_sync.formats.timestamps import parse_instant
from signet_sync.sync import manifests
from signet_sync.sync.deriving import publish_pages

root, now = sys.argv[1], parse_instant(sys.argv[2])
armed = True

def stop(event, given):
    global armed
    if armed and event == "open" and isinstance(given[0], str) and given[0].endswith(".tmp") and given[2] & os.O_CREAT:
        armed = False
        os.kill(os.getpid(), signal.SIGSTOP)

sys.addaudithook(stop)
"""
PAGE = """
# Without the workspace's lock: the lease alone is what is tried here.
with opened(root, Settings()) as workspace:
    outcome = publish_pages(workspace, agents={"default"}, now_us=now)
print(outcome.deferred, outcome.trouble)
"""
Stopped = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def vault(tmp_path):
    found = Vault(tmp_path / "vault")
    for number in (1, 2):
        found.session(number)
    found.reindex()
    return found


@pytest.fixture
def stopped(vault: Vault) -> Iterator[Stopped]:
    """Starts a process that stops in the middle of its write; gives it once it has."""
    started: list[subprocess.Popen[str]] = []

    def start(script: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", STOPS + script, str(vault.root), NOW, *arguments],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), "it ended without a write"
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.communicate()


def stale(vault: Vault, how: str = "gone") -> None:
    """The page is to be written, and only the page."""
    if how == "gone":
        (vault / "MEMORY.md").unlink()
    else:
        vault.session(4)
        vault.reindex("--index-only")


def lease(vault: Vault) -> tuple[object, ...]:
    (row,) = vault.rows("select fence, lease_owner is not null, lease_owner from memory_md_heads")
    return row


@pytest.mark.parametrize("how", ["gone", "old"])
def test_a_holder_that_slept_past_its_lease_writes_nothing(vault: Vault, stopped: Stopped, how: str) -> None:
    stale(vault, how)
    sleeper = stopped(PAGE)
    fence, held, owner = lease(vault)
    assert held and str(owner).split(":")[1] == str(sleeper.pid)
    vault.session(3)
    vault.reindex()
    after = vault.page(), (vault / "MEMORY.md").stat().st_ino
    assert "number 3" in after[0] and lease(vault)[0] == int(str(fence)) + 1
    rows = vault.rows("select * from pages"), vault.rows("select content_hash from memory_md_heads")

    sleeper.send_signal(signal.SIGCONT)
    said, _ = sleeper.communicate(timeout=120)
    assert said.startswith("True ") and "was taken over" in said
    assert (vault.page(), (vault / "MEMORY.md").stat().st_ino) == after
    assert (vault.rows("select * from pages"), vault.rows("select content_hash from memory_md_heads")) == rows
    assert not list(vault.root.glob("MEMORY.user-*")) and not list((vault / ".signet/tmp").iterdir())


def test_a_holder_whose_lease_nobody_wanted_goes_on(vault: Vault, stopped: Stopped) -> None:
    page = vault.page()
    stale(vault)
    sleeper = stopped(PAGE)
    sleeper.send_signal(signal.SIGCONT)
    assert sleeper.communicate(timeout=120)[0].startswith("False ")
    assert vault.page() == page


@pytest.mark.parametrize("buried", [True, False])
def test_a_killed_holder_of_a_lease_frees_it_at_once(vault: Vault, stopped: Stopped, buried: bool) -> None:
    """Also where nobody asks for how it ended, as in a container whose first process is no init."""
    page = vault.page()
    stale(vault)
    holder = stopped(PAGE)
    holder.kill()
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)
    if buried:
        holder.wait()
    assert lease(vault)[1] == 1
    assert vault.reindex()["agents"]["default"]["changed"] and vault.page() == page
