"""The agent as a process: what happens to the files is soon true of search, status and MEMORY.md."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import artifacts_fixture as made
import pytest
from agents import DEADLINE, LINUX, Agent, Session, heartbeat, manager, page, save, seconds, status, until, verdicts
from workbench import Vault

from benchmarks.corpus import write_corpus

Start = Any


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return Vault(tmp_path / "vault")


@pytest.fixture
def start(vault: Vault) -> Iterator[Start]:
    """Starts agents on the vault; none is left at the end."""
    started: list[Agent] = []

    def run(*options: str, **given: Any) -> Agent:
        started.append(Agent(vault, *options, **given))
        return started[-1]

    yield run
    for agent in started:
        agent.close()


# ── what happens to files; one agent for all of these, each with a session of its own ──


@pytest.fixture(scope="module")
def long_lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """One agent that the tests of this group share, in a machine of its own."""
    folder = tmp_path_factory.mktemp("shared")
    places = {"SIGNET_STATE": str(folder / "state"), "SIGNET_CONFIG": str(folder / "config.toml")}
    environ = {"SIGNET_RECONCILE_SETTLE_SECONDS": "0.5", "SIGNET_WATCH_SWEEP_INTERVAL": "1"}
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


def known(agent: Agent, session: Session) -> Session:
    """Waits until a session is searchable and on the page."""
    until(lambda: len(agent.vault.hits(session.word)) == 2, "searchable")
    until(lambda: session.sentence in page(agent.vault), "on the page")
    return session


def verdict(agent: Agent, path: str) -> tuple[str, str] | None:
    return verdicts(agent.vault).get(path)


WARNING = "changed or lost after being sealed: signet-sync violations list"


def test_a_created_session_is_found_counted_and_shown(agent: Agent) -> None:
    before = status(agent.vault)["counts"]
    session = known(agent, Session().write(agent.vault))
    counts = until(lambda: (now := status(agent.vault)["counts"])["artifacts"] == before["artifacts"] + 3 and now)
    assert counts["sessions"] == before["sessions"] + 1
    assert f"[[{session.path('summary')}|summary]]" in page(agent.vault)


def test_an_edit_in_place_is_a_violation_that_restore_heals_while_the_agent_runs(agent: Agent) -> None:
    session = known(agent, Session().write(agent.vault))
    path = session.path("summary")
    file = agent.vault / path
    sealed = file.read_bytes()
    with file.open("r+b") as stream:
        stream.seek(0, os.SEEK_END)
        stream.write(b"A later thought.\n")
    until(lambda: verdict(agent, path) == ("violation", "mutated"), "a violation")
    until(lambda: WARNING in page(agent.vault), "the warning line")
    assert status(agent.vault)["violations"] == [path]
    assert agent.vault.hits(session.word), "the sealed text stays searchable"

    assert agent.vault.call("violations", "restore", path, "--yes").code == 0
    assert file.read_bytes() == sealed
    until(lambda: WARNING not in page(agent.vault), "the warning goes")
    assert status(agent.vault)["counts"]["violations"] == 0
    assert verdict(agent, path) == ("indexed", "")


def test_properties_saved_anew_by_an_editor_stay_indexed_as_reformatted(agent: Agent) -> None:
    session = known(agent, Session().write(agent.vault))
    path = session.path("summary")
    head, body = (agent.vault / path).read_text().removeprefix("---\n").split("\n---\n", 1)
    lines = [re.sub(r'^(\w+): "(.*)"$', r"\1: '\2'", line) for line in reversed(head.split("\n"))]
    lines = [line.replace(": null", ":") for line in lines]
    save(agent.vault / path, ("---\n" + "\n".join(lines) + "\n---\n" + body).encode())

    def notes() -> str:
        rows = agent.vault.rows("select coalesce(notes, '') from files where path = ?", path)
        return str(rows[0][0]) if rows else ""

    until(lambda: "reformatted" in notes(), "the note")
    assert verdict(agent, path) == ("indexed", "")
    assert session.sentence in page(agent.vault)
    assert status(agent.vault)["counts"]["violations"] == 0


def test_a_save_by_rename_with_another_body_is_a_violation(agent: Agent) -> None:
    session = known(agent, Session().write(agent.vault))
    path = session.path("transcript")
    save(agent.vault / path, (agent.vault / path).read_bytes() + b"More.\n")
    until(lambda: verdict(agent, path) == ("violation", "mutated"), "a violation")
    until(lambda: WARNING in page(agent.vault), "the warning line")
    assert agent.vault.call("violations", "restore", "--all", "--yes").code == 0
    until(lambda: WARNING not in page(agent.vault), "healed")


def test_a_deleted_file_leaves_search_and_is_missed(agent: Agent) -> None:
    session = known(agent, Session().write(agent.vault))
    path = session.path("summary")
    raw = (agent.vault / path).read_bytes()
    (agent.vault / path).unlink()
    until(lambda: verdict(agent, path) == ("violation", "vanished"), "missed")
    until(lambda: path not in agent.vault.hits(session.word), "gone from search")
    until(lambda: f"[[{path}|summary]]" not in page(agent.vault) and WARNING in page(agent.vault), "gone from the page")
    assert path in status(agent.vault)["violations"]
    save(agent.vault / path, raw)
    until(lambda: f"[[{path}|summary]]" in page(agent.vault) and WARNING not in page(agent.vault), "back")


def test_a_conflict_copy_is_told_and_never_indexed(agent: Agent) -> None:
    session = known(agent, Session().write(agent.vault))
    path = session.path("summary")
    copy = path.removesuffix(".md") + ".sync-conflict-20260101-120000-ABCDEFG.md"
    before = status(agent.vault)["counts"]
    (agent.vault / copy).write_bytes((agent.vault / path).read_bytes())
    until(lambda: verdict(agent, copy) == ("ignored", "conflict-copy"), "told")
    assert copy not in agent.vault.hits(session.word)
    assert "sync-conflict" not in page(agent.vault)
    assert status(agent.vault)["counts"] == before
    (agent.vault / copy).unlink()
    until(lambda: verdict(agent, copy) is None, "forgotten")


def test_a_tombstone_takes_the_session_out_of_everything(agent: Agent) -> None:
    session = known(agent, Session().write(agent.vault))
    before = status(agent.vault)["counts"]["tombstones"]
    agent.vault.put(made.tombstone(session_id=session.who["session_id"]), "memory/tombstones")
    until(lambda: not agent.vault.hits(session.word), "gone from search")
    until(lambda: session.sentence not in page(agent.vault), "gone from the page")
    until(lambda: not list(agent.vault.memory.glob(f"*{session.token}*")), "its files are gone")
    until(lambda: status(agent.vault)["counts"]["tombstones"] == before + 1, "counted")

    session.write(agent.vault)
    until(lambda: not list(agent.vault.memory.glob(f"*{session.token}*")), "brought back, it goes again")
    assert not agent.vault.hits(session.word)


def test_deleted_and_made_again_within_the_quiet_time_only_the_final_state_counts(agent: Agent) -> None:
    session = known(agent, Session().write(agent.vault))
    same, other = session.path("summary"), session.path("transcript")
    for path, more in ((same, b""), (other, b"Not what it was.\n")):
        raw = (agent.vault / path).read_bytes()
        (agent.vault / path).unlink()
        (agent.vault / path).write_bytes(raw + more)
    until(lambda: verdict(agent, other) == ("violation", "mutated"), "another content is a violation")
    assert verdict(agent, same) == ("indexed", "")
    assert agent.vault.call("violations", "restore", "--all", "--yes").code == 0
    until(lambda: WARNING not in page(agent.vault), "healed")


EDITOR = """
import os, re, sys, time
path, count, mode = sys.argv[1], int(sys.argv[2]), sys.argv[3]
mine = []
for number in range(count):
    text = open(path, encoding="utf-8").read()
    mine.append(f"my word number {number} of mine")
    begin = text.index("<!-- signet:begin -->")
    fresh = "\\n".join(mine) + "\\n\\n" + text[begin:]
    if mode == "rename":
        with open(path + ".editor", "w", encoding="utf-8") as stream:
            stream.write(fresh)
        os.replace(path + ".editor", path)
    else:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(fresh)
    time.sleep(0.01)
"""


@pytest.mark.parametrize("mode", ["rename", "in place"])
def test_no_word_is_lost_when_a_person_writes_memory_md_while_the_agent_does(agent: Agent, mode: str) -> None:
    vault = agent.vault
    editor = subprocess.Popen([sys.executable, "-c", EDITOR, str(vault / "MEMORY.md"), "200", mode])
    sessions = []
    while editor.poll() is None:
        sessions.append(Session().write(vault))
        time.sleep(0.15)
    assert editor.wait() == 0
    until(lambda: all(session.sentence in page(vault) for session in sessions[-5:]), "the page follows")
    text = page(vault)
    assert [number for number in range(200) if f"my word number {number} of mine\n" not in text] == []
    assert text.count("<!-- signet:begin -->") == text.count("<!-- signet:end ") == 1


@pytest.mark.skipif(not LINUX, reason="reads /proc")
def test_an_idle_agent_uses_no_time_and_does_not_wake(agent: Agent) -> None:
    def used() -> tuple[int, int]:
        proc = Path(f"/proc/{agent.process.pid}")
        times = (proc / "stat").read_text().rpartition(")")[2].split()
        switches = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", (proc / "status").read_text(), re.M)
        assert switches is not None
        return int(times[11]) + int(times[12]), int(switches[1])

    def rests() -> bool:
        before = used()
        time.sleep(2)
        return used() == before

    time.sleep(2.5)  # sweep and checkpoint follow what the tests before did
    until(rests, "two seconds without a wake-up")


def test_the_log_holds_no_memory_text(agent: Agent) -> None:
    known(agent, Session().write(agent.vault))
    broken = Session()
    name, raw = broken.summary(project=f"/home/{broken.word}", content_sha256=f"{broken.word}")
    agent.vault.put((name, raw))
    until(lambda: (verdict(agent, f"memory/{name}") or ("",))[0] == "invalid", "refused")
    for text in (agent.log(), agent.output()):
        assert "signet-sync" in text
        assert "kestrel" not in text
        assert "retry loop" not in text


# ── files that take their time ──


def test_a_file_that_grows_slowly_is_never_flagged_in_between(vault: Vault, start: Start) -> None:
    agent = start()
    agent.passed()
    session = Session()
    name, raw = session.summary()
    path = f"memory/{name}"
    seen = set()
    step = -(-len(raw) // 10)
    with (vault / path).open("wb", buffering=0) as stream:
        for begin in range(0, len(raw), step):
            stream.write(raw[begin : begin + step])
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                seen.add(verdict(agent, path))
                time.sleep(0.05)
    until(lambda: verdict(agent, path) == ("indexed", ""), "indexed at last")
    assert seen <= {None, ("indexed", "")}, seen
    until(lambda: session.sentence in page(vault), "on the page")


# ── many at once ──


def many(vault: Vault, count: int) -> None:
    for number in range(count):
        session = Session(100_000 + number)
        vault.put(session.summary())


def stopped_and_continued(agent: Agent, count: int, limit: float) -> None:
    agent.send(signal.SIGSTOP)
    try:
        many(agent.vault, count)
    finally:
        agent.send(signal.SIGCONT)
    begin = time.monotonic()
    until(lambda: status(agent.vault)["counts"]["artifacts"] >= count, f"{count} files", 10 * DEADLINE)
    assert time.monotonic() - begin < seconds(limit)
    assert len(agent.vault.rows("select 1 from memory_artifacts where source_kind = 'summary'")) == count


def test_two_thousand_files_made_while_it_was_stopped_are_all_found(vault: Vault, start: Start) -> None:
    agent = start()
    agent.passed()
    stopped_and_continued(agent, 2000, 5.0)


@pytest.mark.slow
def test_twenty_thousand_files_made_while_it_was_stopped_are_all_found(vault: Vault, start: Start) -> None:
    agent = start()
    agent.passed()
    stopped_and_continued(agent, 20_000, 30.0)


# ── one agent a workspace ──


def test_a_second_run_ends_with_4_within_a_second(vault: Vault, start: Start) -> None:
    first = start()
    first.passed()
    begin = time.monotonic()
    answer = vault.spawn("run")
    took = time.monotonic() - begin
    assert answer.code == 4
    assert f"pid {first.process.pid}" in answer.err
    assert took < seconds(1.0)
    assert status(vault)["pid"] == first.process.pid
    assert status(vault)["running"]


def test_of_eight_starters_exactly_one_runs(vault: Vault, start: Start) -> None:
    agents = [start() for _ in range(8)]
    until(lambda: sum(agent.process.poll() is not None for agent in agents) == 7, "seven have ended")
    codes = sorted(str(agent.process.poll()) for agent in agents)
    assert codes == ["4"] * 7 + ["None"]
    (winner,) = [agent for agent in agents if agent.process.poll() is None]
    winner.passed()
    assert len(list(Path(os.environ["SIGNET_STATE"]).glob("*-*-*/workspace.json"))) == 1, "one id"


def test_killed_it_can_be_started_again_at_once(vault: Vault, start: Start) -> None:
    session = Session().write(vault)
    first = start()
    first.passed()
    assert first.end(signal.SIGKILL)[0] == -signal.SIGKILL
    left = heartbeat(vault)
    assert left is not None
    found = status(vault)
    assert (found["running"], found["pid"], found["state"], found["stale_heartbeat"]) == (False, None, "stopped", True)

    second = start()
    assert second.passed()["pid"] == second.process.pid
    assert vault.hits(session.word)


# ── ends ──


def test_idle_it_ends_at_once_and_leaves_nothing_behind(vault: Vault, start: Start) -> None:
    Session().write(vault)
    agent = start()
    agent.passed()
    code, took = agent.end()
    assert (code, agent.output().count("Traceback")) == (0, 0)
    assert took < seconds(2.0)
    assert heartbeat(vault) is None
    wal = Path(f"{vault.db}-wal")
    assert not wal.exists() or wal.stat().st_size == 0
    assert not list((vault / ".signet" / "tmp").iterdir())
    assert (status(vault)["state"], status(vault)["running"]) == ("stopped", False)


def test_in_its_first_pass_it_ends_within_two_seconds(vault: Vault, start: Start) -> None:
    write_corpus(str(vault.root), 1000)
    agent = start()
    until(lambda: (heartbeat(vault) or {}).get("state") == "reconciling", "it has begun")
    time.sleep(0.2)
    code, took = agent.end()
    assert code == 0, agent.output()
    assert vault.rows("select count(*) from files") == [(0,)], "it was in the midst of it"
    assert took < seconds(2.0)
    wal = Path(f"{vault.db}-wal")
    assert not wal.exists() or wal.stat().st_size == 0
    assert heartbeat(vault) is None


# ── settings and the service manager ──


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
    assert "the old settings stay" in found["trouble"]
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
        until(lambda: texts().count("WATCHDOG=1") >= count + 4, "signs of life of an idle loop", 10)
        beats = [at for at, text in heard() if text == "WATCHDOG=1"][-4:]
        assert max(b - a for a, b in itertools.pairwise(beats)) < seconds(0.6)

        agent.send(signal.SIGHUP)
        until(lambda: texts().count("READY=1") == 2, "ready again")
        reloading = next(i for i, text in enumerate(texts()) if text.startswith("RELOADING=1\nMONOTONIC_USEC="))
        assert "READY=1" in texts()[reloading:]

        assert agent.end()[0] == 0
        until(lambda: "STOPPING=1" in texts(), "stopping")


def test_memory_in_no_database_is_no_agent(vault: Vault) -> None:
    answer = vault.spawn("--db", ":memory:", "run")
    assert answer.code == 2
    assert "--db" in answer.err


# ── polling ──


@pytest.mark.parametrize("options", [("--no-watch", "--interval", "1"), ()])
def test_without_events_it_looks_by_itself(vault: Vault, start: Start, options: tuple[str, ...]) -> None:
    environ = {} if options else {"SIGNET_WATCH_MODE": "polling", "SIGNET_WATCH_POLL_INTERVAL": "0.3"}
    Session().write(vault)
    agent = start(*options, environ={**environ, "SIGNET_RECONCILE_SETTLE_SECONDS": "0.5"})
    found = agent.passed()
    assert (found["state"], found["watch"]) == ("polling", None if options else "polling")
    session = Session().write(vault)
    known(agent, session)
    path = session.path("summary")
    (vault / path).write_bytes((vault / path).read_bytes() + b"More.\n")
    until(lambda: verdict(agent, path) == ("violation", "mutated"), "an edit")
    (vault / path).unlink()
    until(lambda: verdict(agent, path) == ("violation", "vanished"), "a deletion")
    (vault / "MEMORY.md").write_text("Mine.\n")
    until(lambda: "Mine." in page(vault) and "signet:begin" in page(vault), "a page that was written over")
    assert agent.end()[0] == 0
