"""Storms: thousands of changes at once, watches that run out or go deaf, a vault that goes away; nothing is missed."""

from __future__ import annotations

import os
from collections.abc import Callable

import agents
import artifacts_fixture as made
import hand_edits
import pytest
from agents import LINUX, Agent, Inside, Session, some, until, verdicts
from invariants import everything
from workbench import Vault, tree

from signet_sync.app.workspace import open_workspace
from signet_sync.settings.model import Settings
from signet_sync.storage.locations import now_us
from signet_sync.sync.deriving import publish
from signet_sync.sync.index_records import Change
from signet_sync.sync.workspace import Outcome, Pass, Request

Start = Callable[..., Agent]
start, quick = agents.start, agents.quick

linux_only = pytest.mark.skipif(not LINUX, reason="reads /proc")


def indexed(vault: Vault) -> int:
    """How many files the index holds as good."""
    return int(vault.rows("select count(*) from files where verdict = 'indexed'")[0][0])


def shown(vault: Vault) -> set[str]:
    """The paths that the index holds as good."""
    return {path for path, (verdict, _) in verdicts(vault).items() if verdict == "indexed"}


def names(vault: Vault) -> set[str]:
    """The paths of the files in `memory/`."""
    return {f"memory/{entry.name}" for entry in os.scandir(vault.memory) if entry.is_file()}


LONG = 900.0  # seconds until thousands of files are known


def in_step(vault: Vault) -> bool:
    """Whether the index knows exactly what is in `memory/`, everything of ours as good."""
    on_disk, found = names(vault), verdicts(vault)
    ours = {path for path in on_disk if path.count("--") >= 2}
    return {path for path, (_, code) in found.items() if code != "vanished"} == on_disk and all(
        found[path][0] == "indexed" for path in ours
    )


def made_up(count: int, first: int = 100_000) -> dict[str, bytes]:
    """The files of so many sessions, three each."""
    files: dict[str, bytes] = {}
    for number in range(count):
        files.update(Session(first + number).files())
    return files


# ── thousands of files ──


@linux_only
@pytest.mark.slow
def test_thousands_of_files_made_renamed_and_deleted_while_it_runs_leave_the_index_in_step(
    vault: Vault, start: Start
) -> None:
    agent = start(environ={"SIGNET_RECONCILE_SETTLE_SECONDS": "0.5"})
    agent.passed()
    files = made_up(1000)
    for name, raw in files.items():
        agents.save(vault.memory / name, raw)
    until(lambda: indexed(vault) == len(files), "all indexed", LONG)
    until(lambda: in_step(vault), "temporary names that a pass saw are forgotten")

    for name in files:
        (vault.memory / name).rename(vault.memory / f"{name}.away")
        (vault.memory / f"{name}.away").rename(vault.memory / name)
    for number in range(3_000):
        (vault.memory / f"note {number}.md").write_text("Not an artifact.\n")
        (vault.memory / f"note {number}.md").rename(vault.memory / f"other {number}.md")
        (vault.memory / f"other {number}.md").unlink()
    until(lambda: in_step(vault), "in step", LONG)
    assert indexed(vault) == len(files)

    doomed = sorted(files)[: 3 * 480]  # whole sessions, fewer than half
    for name in doomed:
        (vault.memory / name).unlink()
    # Of a session whose summary was still there when its manifest went, the manifest may have been written again.
    until(lambda: shown(vault) == names(vault), "gone from the index", LONG)
    agent.wait("watching")
    assert len(names(vault)) < len(files) - len(doomed) + 100 and shown(vault) == names(vault)


# ── one file ──


@pytest.mark.usefixtures("quick")
def test_however_a_file_is_saved_each_content_is_read_once(vault: Vault) -> None:
    Session().write(vault)
    with Inside(vault, debounce=0.15) as agent:
        agent.wait("watching")
        for way, save in hand_edits.EDITORS.items():
            if way == "over it":
                continue  # the file must be there
            session = Session()
            name, raw = session.summary()
            path = f"memory/{name}"
            vault.put(made.manifest(**session.who))  # or else we would write one
            agent.settled(0.3)
            for content in (raw, raw.replace(b"harness: ", b"harness:  ")):
                before = len(agent.done)
                agent.free.clear()  # no pass falls into a save
                save(vault.memory / name, content)
                agent.free.set()
                until(lambda path=path: verdicts(vault).get(path) == ("indexed", ""), way)
                agent.settled(0.3)
                # The manifest's reference follows the page: one more file that is read.
                assert agent.since(before)[0] <= 2, (way, agent.done[before:])
                outcomes = [outcome for _, outcome in agent.done[before:] if outcome is not None]
                moved = [path in outcome.change.paths for outcome in outcomes]
                assert sum(moved) <= 1, way
        before = len(agent.done)
        (vault.memory / name).chmod(0o640)
        agent.settled(0.3)
        assert agent.since(before)[1] == 0, "a mode is no content"
        assert {told for told, _ in verdicts(vault).values()} == {"indexed"}


# ── its own writes ──


@linux_only
@pytest.mark.slow
def test_who_is_idle_writes_nothing(vault: Vault) -> None:
    vault.put(made_up(100))
    assert vault.call("entity", "create", "user", "Mira").code == 0
    with Inside(vault, settle_seconds=2.0, debounce=0.2, interval=2.0) as agent:
        agent.wait("watching")
        Session().write(vault)
        until(lambda: len(agent.passes) >= 12, "sweep, checkpoint and backup followed what was done", LONG)
        before, passes = everything(vault), len(agent.passes)
        until(lambda: len(agent.passes) >= passes + 10, "full passes of the timer", LONG)
        requests = [request for request, _ in agent.done[passes:]]
        after = everything(vault)
    moved = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    # SQLite makes these whenever a reader opens the database, and deletes them with the last one.
    moved = [path for path in moved if not path.endswith((".db-wal", ".db-shm"))]
    beside = [request for request in requests if request.paths is not None]
    assert moved == [] and beside == []


# ── a vault that goes away ──


@pytest.mark.parametrize("what", ["MEMORY.md", "ledger"])
def test_a_vault_that_goes_while_a_pass_runs_leaves_no_page_at_its_mount_point(vault: Vault, what: str) -> None:
    """A page holds what was remembered: it must not be made on whatever disk is there in its place."""
    paths = [some(vault, 2)[0].path("summary")]
    vault.reindex("--full", now=agents.ago())
    work = open_workspace(str(vault.root), Settings())
    vault.root.rename(vault.root.parent / "aside")
    vault.root.mkdir()
    try:
        change = Change(agents={"default"})
        if what == "ledger":
            change.days |= {
                ("default", row[0]) for row in work.database.execute("select distinct day from ledger_rows")
            }
        touched = frozenset(paths if what == "ledger" else ["MEMORY.md"])
        run = Pass(work, Request(now_us(), touched), Outcome(change=change))
        publish(run, work.pipeline.publishers)
    finally:
        work.close()
    assert tree(vault.root) == {}
