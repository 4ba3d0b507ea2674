"""Another version is installed while the agent runs: it is started by the service manager, and no row is harmed."""

from __future__ import annotations

import os
import shutil
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
from agents import Agent, Inside, Session, known, manager, status, until
from workbench import ROOT, Vault

import signet_sync
from signet_sync import __version__
from signet_sync.app.upgrade import EXIT_CODE, Upgrade, is_restarted
from signet_sync.errors import DatabaseError
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import VERSION
from signet_sync.sync.store.rules import set_version, version_of

vault, quick = agents.vault, agents.quick

# ── what is installed, and when the agent ends for it ──

SYSTEMD, LAUNCHD = {"NOTIFY_SOCKET": "/run/notify"}, {"XPC_SERVICE_NAME": "dev.signet-sync.agent.notes-0a1b2c3d"}
TERMINALS = ({}, {"XPC_SERVICE_NAME": "0"}, {"XPC_SERVICE_NAME": "application.com.apple.Terminal.1"})


def test_another_version_on_the_disk_is_a_reason_to_end_and_a_missing_one_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version_file = tmp_path / "__init__.py"
    version_file.write_text('__version__ = "0.1.0"\n')
    monkeypatch.setattr(signet_sync, "__file__", str(version_file))
    ours = Upgrade()
    os.utime(version_file, ns=(0, version_file.stat().st_mtime_ns))  # read
    os.link(version_file, version_file.with_name("kept by a cache"))
    assert not ours.is_due()
    version_file.unlink()
    assert not ours.is_due()
    version_file.write_text('__version__ = "0.2.0"\n')
    assert ours.is_due()


def test_only_what_a_service_manager_started_is_started_again() -> None:
    assert is_restarted(SYSTEMD) and is_restarted(LAUNCHD)
    assert not any(map(is_restarted, TERMINALS))


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
    with pytest.raises(DatabaseError, match="another version") as caught, database.transaction():
        set_version(database, "x", "y")
    assert "again" in caught.value.hint
    assert not database.connection.in_transaction and version_of(database, "x") is None
    with pytest.raises(DatabaseError):
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
from signet_sync.app import scheduler
scheduler.BEAT = 0.2
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
