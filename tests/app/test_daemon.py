"""The agent as a process: what happens to the files is soon true of search, status and MEMORY.md."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents import LINUX, Agent, Session, known, page, save, status, until, verdicts
from workbench import Vault


@pytest.fixture(scope="module")
def long_lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """One agent that the tests of this group share, in a machine of its own."""
    folder = tmp_path_factory.mktemp("shared")
    places = {"SIGNET_STATE": str(folder / "state"), "SIGNET_CONFIG": str(folder / "config.toml")}
    environ = {"SIGNET_RECONCILE_SETTLE_SECONDS": "0.5"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in places.items():
            patch.setenv(name, value)
        vault = Vault(folder / "vault")
        Session().write(vault)
        agent = Agent(vault, environ=environ)
        agent.places = places  # type: ignore[attr-defined]
        agent.passed()
    yield agent
    agent.close()


@pytest.fixture
def agent(long_lived: Agent, monkeypatch: pytest.MonkeyPatch) -> Agent:
    for name, value in long_lived.places.items():  # type: ignore[attr-defined]
        monkeypatch.setenv(name, value)
    assert long_lived.process.poll() is None, long_lived.output()
    return long_lived


WARNING = "changed or lost after being sealed: signet-sync violations list"


def test_an_edit_in_place_is_a_violation_that_restore_heals_while_the_agent_runs(agent: Agent) -> None:
    session = known(agent.vault, Session().write(agent.vault))
    path = session.path("summary")
    assert f"[[{path}|summary]]" in page(agent.vault)
    file = agent.vault / path
    sealed = file.read_bytes()
    with file.open("r+b") as stream:
        stream.seek(0, os.SEEK_END)
        stream.write(b"A later thought.\n")
    until(lambda: verdicts(agent.vault).get(path) == ("violation", "mutated"), "a violation")
    until(lambda: WARNING in page(agent.vault), "the warning line")
    assert status(agent.vault)["violations"] == [path]
    assert agent.vault.hits(session.word), "the sealed text stays searchable"
    assert agent.vault.call("violations", "restore", path, "--yes").code == 0
    assert file.read_bytes() == sealed
    until(lambda: WARNING not in page(agent.vault), "the warning goes")
    assert status(agent.vault)["counts"]["violations"] == 0
    assert verdicts(agent.vault).get(path) == ("indexed", "")


def test_a_deleted_file_leaves_search_and_is_missed(agent: Agent) -> None:
    session = known(agent.vault, Session().write(agent.vault))
    path = session.path("summary")
    raw = (agent.vault / path).read_bytes()
    (agent.vault / path).unlink()
    until(lambda: verdicts(agent.vault).get(path) == ("violation", "vanished"), "missed")
    until(lambda: path not in agent.vault.hits(session.word), "gone from search")
    until(lambda: f"[[{path}|summary]]" not in page(agent.vault) and WARNING in page(agent.vault), "gone from the page")
    assert path in status(agent.vault)["violations"]
    save(agent.vault / path, raw)
    until(lambda: f"[[{path}|summary]]" in page(agent.vault) and WARNING not in page(agent.vault), "back")


@pytest.mark.skipif(not LINUX, reason="reads /proc")
def test_an_idle_agent_uses_no_time_and_does_not_wake(agent: Agent) -> None:
    def used() -> tuple[int, int]:
        proc = Path(f"/proc/{agent.process.pid}")
        times = (proc / "stat").read_text().rpartition(")")[2].split()
        switches = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", (proc / "status").read_text(), re.M)
        assert switches is not None
        return int(times[11]) + int(times[12]), int(switches[1])

    def rests() -> bool:
        # Sweep and checkpoint may still follow what the tests before did.
        before, end = used(), time.monotonic() + 2
        while used() == before:
            if time.monotonic() > end:
                return True
            time.sleep(0.1)
        return False

    until(rests, "two seconds without a wake-up")


def test_the_log_holds_no_memory_text(agent: Agent) -> None:
    known(agent.vault, Session().write(agent.vault))
    broken = Session()
    name, raw = broken.summary(project=f"/home/{broken.word}", content_sha256=f"{broken.word}")
    agent.vault.put((name, raw))
    until(lambda: (verdicts(agent.vault).get(f"memory/{name}") or ("",))[0] == "invalid", "refused")
    for text in (agent.log(), agent.output()):
        assert "signet-sync" in text
        assert "kestrel" not in text
        assert "retry loop" not in text
