"""Another version is installed while the agent runs: it is started by the service manager, and no row is harmed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import agents
import apsw
import pytest
from agents import Agent, Inside, Session, known, manager, some, status, until
from workbench import ROOT, Vault, spawn

import signet_sync
from signet_sync import __version__
from signet_sync.app import upgrade
from signet_sync.app.upgrade import EXIT_CODE, Upgrade
from signet_sync.errors import DatabaseNewer
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import VERSION
from signet_sync.sync.store.rules import set_version, version_of

vault, quick = agents.vault, agents.quick

# ── what is installed, and when the agent ends for it ──

SYSTEMD, LAUNCHD = {"NOTIFY_SOCKET": "/run/notify"}, {"XPC_SERVICE_NAME": "dev.signet-sync.agent.notes-0a1b2c3d"}
TERMINALS = ({}, {"XPC_SERVICE_NAME": "0"}, {"XPC_SERVICE_NAME": "application.com.apple.Terminal.1"})


class Installed:
    """An installation of which only the file with the version is there."""

    def __init__(self, folder: Path) -> None:
        self.version_file = folder / "__init__.py"
        self.now = 1000.0
        self.put("0.1.0")

    def put(self, version: str) -> None:
        """Replaces the file as an installer does."""
        new = self.version_file.with_suffix(".new")
        new.write_text(f'__version__ = "{version}"\n')
        new.replace(self.version_file)

    def passes(self, seconds: float, of: Upgrade, step: float = 15.0) -> bool:
        """Lets time go by in beats of the agent; whether it is to end by then."""
        end = self.now + seconds
        while self.now < end:
            self.now += step
            if of.is_due(self.now):
                return True
        return False


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    made = Installed(tmp_path)
    monkeypatch.setattr(signet_sync, "__file__", str(made.version_file))
    return made


def test_while_nothing_is_installed_the_agent_stays(there: Installed) -> None:
    ours = Upgrade(there.now, SYSTEMD)
    assert not there.passes(3600, ours)
    os.utime(there.version_file, ns=(0, there.version_file.stat().st_mtime_ns))  # read
    os.link(there.version_file, there.version_file.with_name("kept by a cache"))
    assert not there.passes(3600, ours) and ours.trouble == ""


@pytest.mark.parametrize("environ", [SYSTEMD, LAUNCHD])
def test_the_agent_of_a_service_ends_within_two_minutes_once_no_file_changes_any_more(
    there: Installed, environ: dict[str, str]
) -> None:
    ours = Upgrade(there.now, environ)
    there.passes(120, ours)
    for part in range(30):
        there.put(f"0.2.{part}")
        assert not there.passes(6, ours, step=3)
    assert there.passes(60, ours) and ours.trouble == ""


@pytest.mark.parametrize("environ", TERMINALS)
def test_an_agent_that_nothing_restarts_continues_and_reports_the_upgrade(
    there: Installed, environ: dict[str, str]
) -> None:
    ours = Upgrade(there.now, environ)
    there.put("0.2.0")
    assert not there.passes(3600, ours)
    assert ours.trouble == f"signet-sync was upgraded; the agent continues as {__version__} until it is restarted"


def test_one_that_was_removed_is_no_reason_to_end(there: Installed) -> None:
    ours = Upgrade(there.now, SYSTEMD)
    there.version_file.unlink()
    assert not there.passes(300, ours)
    assert ours.trouble == f"signet-sync was removed; the agent continues as {__version__} until it is restarted"
    there.put("0.2.0")
    assert there.passes(300, ours)


# ── a program beside a database that another version took over ──


def by_a_newer_one(path: Path) -> None:
    """What a newer signet-sync does to the database beside us."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(5000)
    with connection:
        connection.execute("alter table pins rename column pinned_at to since; create table later(x)")
        connection.execute(f"pragma user_version = {VERSION + 1}")
    connection.close()


def test_whoever_has_the_database_open_writes_nothing_into_that_of_a_newer_one(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    database = Database(str(path))
    by_a_newer_one(path)
    with pytest.raises(DatabaseNewer, match="another version") as caught, database.transaction():
        set_version(database, "x", "y")
    assert "again" in caught.value.hint
    assert not database.connection.in_transaction and version_of(database, "x") is None
    with pytest.raises(DatabaseNewer):
        database.problems()  # a column is missing, which is no damage
    database.close()


@pytest.mark.usefixtures("quick")
def test_an_agent_whose_database_a_newer_one_has_changed_leaves_it_alone(vault: Vault) -> None:
    session = Session().write(vault)
    with Inside(vault) as agent:
        agent.wait("watching")
        known(vault, session)
        by_a_newer_one(vault.db)
        agent.wait("degraded: another version of signet-sync has taken the database over")
        before = dumped(vault.db)
        Session().write(vault)
        time.sleep(0.3)
        assert dumped(vault.db) == before
    assert not list(vault.state.glob("*.corrupt-*"))


def dumped(path: Path) -> bytes:
    """The database as it is now."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.serialize("main")
    finally:
        connection.close()


# ── processes ──

QUICK = """\
from signet_sync.app import scheduler, upgrade
scheduler.BEAT, upgrade.EVERY, upgrade.STILL = 0.2, 0.2, 0.3
from signet_sync.__main__ import main
main()
"""


class Place:
    """A package of ours in a folder of its own, which can be exchanged as an installer does it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.changes = 0
        self.package = folder / "signet_sync"
        shutil.copytree(ROOT / "signet_sync", self.package)
        self.quick = folder / "quick.py"
        self.quick.write_text(QUICK)
        self.environ = {"PYTHONPATH": str(folder)}

    def put(self, path: str, *changes: tuple[str, str]) -> None:
        """Replaces a file of the package by one that reads otherwise."""
        file = self.package / path
        text = file.read_text()
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        self.changes += 1
        new = file.with_name("new")
        new.write_text(text)
        # Python takes compiled code for that of a source of the same size and second.
        os.utime(new, (time.time(), time.time() + 5 * self.changes))
        new.replace(file)

    def put_version(self, version: str) -> None:
        now = next(line for line in (self.package / "__init__.py").read_text().splitlines() if "__version__" in line)
        self.put("__init__.py", (now, f'__version__ = "{version}"'))

    def newer_schema(self) -> None:
        """A version that has one more native table."""
        later = '    native("", "create table later(x)"),\n'
        tables = "NATIVE: tuple[Table, ...] = (\n"
        self.put("storage/database/native.py", (tables, tables + later))


@contextmanager
def running(vault: Vault, place: Place, **environ: str) -> Iterator[Agent]:
    """An agent of the package in `place` that looks for another one all the time."""
    agent = Agent.__new__(Agent)
    agent.vault, agent.stderr = vault, vault.root.parent / "stderr"
    with agent.stderr.open("wb") as stream:
        command = [sys.executable, str(place.quick), "--workspace", str(vault.root), "run"]
        agent.process = started(command, stream, {**place.environ, **environ})
    try:
        yield agent
    finally:
        agent.close()


def started(command: list[str], stream: Any, environ: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, env={**os.environ, **environ}, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
    )


def of_version(agent: Agent, version: str) -> dict[str, Any]:
    """The status once the agent is of a version and at rest."""

    def look() -> dict[str, Any] | None:
        assert agent.process.poll() is None, agent.output()
        found = status(agent.vault)
        ready = found["version"] == version and found["last_full_pass"] and found["state"] == "watching"
        return found if ready else None

    return until(look, f"version {version}: {agent.output()}")


@pytest.mark.slow
def test_an_agent_ends_for_what_is_installed_under_it_and_the_next_one_continues(vault: Vault, tmp_path: Path) -> None:
    place, session = Place(tmp_path / "site"), Session().write(vault)
    with manager(tmp_path) as (address, heard):
        with running(vault, place, NOTIFY_SOCKET=address) as agent:
            of_version(agent, __version__)
            place.put_version("9.9.9")
            assert agent.process.wait(60) == EXIT_CODE
        with running(vault, place, NOTIFY_SOCKET=address) as agent:
            of_version(agent, "9.9.9")
            assert len(vault.hits(session.word)) == 2
            assert agent.end()[0] == 0
        words = [line for _, text in heard() for line in text.splitlines() if line.startswith(("READY", "STOPPING"))]
    assert words == ["READY=1", "STOPPING=1"] * 2


@pytest.mark.slow
def test_a_newer_command_beside_an_older_agent_loses_nothing(vault: Vault, tmp_path: Path) -> None:
    place, sessions = Place(tmp_path / "site"), some(vault, 3)
    said = ["The lamp of the lantern is lit at dusk.", "The lamp is put out at dawn."]
    vault.call("remember", said[0])
    newer = ["--workspace", str(vault.root)]
    with running(vault, place) as agent:
        of_version(agent, __version__)
        place.newer_schema()
        place.put_version("2.0.0")
        answer = spawn(*newer, "remember", said[1], environ=place.environ, cwd=place.folder)
        assert answer.code == 0, answer
        until(lambda: "was upgraded" in agent.output(), "reported")
        assert agent.end()[0] == 0
    with running(vault, place) as agent:
        until(lambda: status_of(newer, place)["state"] == "watching", "the newer one runs")
        fresh = Session().write(vault)
        until(lambda: fresh.sentence in vault.page(), "the newer one writes the page")
        page = vault.page()
        assert "at dusk" in page and "at dawn" in page and all(session.sentence in page for session in sessions)
        older = vault.call("reindex")
        assert older.code == 3 and "upgrade signet-sync" in older.err
        assert agent.end()[0] == 0
    answer = spawn(*newer, "recall", "--json", "lamp", environ=place.environ, cwd=place.folder)
    assert answer.code == 0, answer
    assert sorted(hit["text"] for hit in answer.json["hits"] if hit["tier"] == "memory") == sorted(said)
    assert not list(vault.state.glob("*.corrupt-*"))


def status_of(words: list[str], place: Place) -> dict[str, Any]:
    answer = spawn(*words, "status", "--json", environ=place.environ, cwd=place.folder)
    assert answer.code == 0, answer
    return dict(answer.json)


@pytest.mark.slow
def test_a_signal_while_the_agent_ends_for_another_version_ends_it_orderly(vault: Vault, tmp_path: Path) -> None:
    place = Place(tmp_path / "site")
    for number, wait in enumerate((0.0, 0.1, 0.3)):
        with running(vault, place, NOTIFY_SOCKET="/nowhere") as agent:
            of_version(agent, f"{number}.0.0" if number else __version__)
            place.put_version(f"{number + 1}.0.0")
            until(lambda: "is installed now" in agent.output(), "it ends")
            time.sleep(wait)
            agent.send(signal.SIGTERM)
            assert agent.process.wait(20) in (0, EXIT_CODE)


# ── what it is made of ──


IMPORT = re.compile(r"^( *)from (signet_sync[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)
OF_TYPES = re.compile(r"^( *)if TYPE_CHECKING:\n(?:\1 +.*\n|\n)+", re.MULTILINE)
# Asked for by commands and by processes beside the agent, each of which is of one version from its start.
OF_PROCESSES: set[str] = set()


def test_an_agent_loads_all_of_its_version_while_that_is_the_one_on_the_disk() -> None:
    """What is imported inside of functions that the agent may call is loaded at its first quiet moment."""
    loaded: set[str] = set()
    late: dict[str, str] = {}
    waiting = ["signet_sync.app.daemon", "signet_sync.app.upgrade"]
    waiting += [name for name in upgrade._LOADED_LATE if name.startswith("signet_sync.")]
    while waiting:
        module = waiting.pop()
        if module not in loaded and (source := source_of(module)):
            loaded.add(module)
            for indent, package, names in IMPORT.findall(OF_TYPES.sub("", source)):
                targets = [package, *(f"{package}.{name}" for name in re.findall(r"\w+", names))]
                if indent:
                    late.update({target: module for target in targets if source_of(target)})
                else:
                    waiting += targets
    assert {target: module for target, module in late.items() if target not in loaded | OF_PROCESSES} == {}


def source_of(module: str) -> str:
    """A module's text; empty for a package's, and for what is no module."""
    try:
        return (ROOT / module.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
