"""Another version is installed while the agent runs: it is started by the service manager, and no row is harmed."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import agents
import apsw
import artifacts_fixture as made
import pytest
from agents import Agent, Inside, Session, ago, known, status, until
from workbench import Vault

import signet_sync
from signet_sync.app.daemon import EXIT_CODE, Upgrade, is_restarted
from signet_sync.errors import DatabaseError
from signet_sync.storage.database.connection import Database
from signet_sync.storage.database.tables import VERSION
from signet_sync.sync.store.passes import set_version, version_of

vault, quick = agents.vault, agents.quick


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


@pytest.mark.usefixtures("quick")
def test_an_agent_ends_for_what_is_installed_under_it(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version_file = tmp_path / "__init__.py"
    version_file.write_text('__version__ = "0.1.0"\n')
    monkeypatch.setattr(signet_sync, "__file__", str(version_file))
    with Inside(vault, upgrade=Upgrade()) as agent:
        agent.wait("watching")
        assert agent.code is None
        version_file.write_text('__version__ = "9.9.9"\n')
        until(lambda: agent.code is not None, "ended")
    assert agent.code == EXIT_CODE and not (vault.state / "heartbeat.json").exists()


@pytest.mark.slow
def test_an_agent_loads_nothing_of_what_is_installed_under_it(vault: Vault, tmp_path: Path) -> None:
    """In a terminal it goes on: a removal, a conflict and a damaged file are judged by the version that it is."""
    package = tmp_path / "installed/signet_sync"
    shutil.copytree(Path(signet_sync.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    removed, kept = Session().write(vault), Session().write(vault)
    places = {"PYTHONPATH": str(package.parent), "PYTHONSAFEPATH": "1"}
    places["SIGNET_RECONCILE_SETTLE_SECONDS"] = "0.1"
    vault.reindex(now=ago())  # nothing is left to do that would load what is needed for it
    agent = Agent(vault, environ=places)
    try:
        agent.passed()
        agent.send(signal.SIGHUP)
        until(lambda: "settings reloaded" in agent.output(), "a second look")

        def gone(path: Path) -> Callable[[], bool]:
            return lambda: not path.exists() or "of another version" in agent.output()

        for path in package.rglob("*.py"):
            path.write_text("raise RuntimeError('of another version')\n")
        name, raw = made.tombstone(token=removed.token)
        (vault / "memory/tombstones").mkdir(exist_ok=True)
        (vault / "memory/tombstones" / name).write_bytes(raw)
        until(gone(vault / removed.path("summary")), "removed")
        copy = vault / kept.path("manifest").replace(".md", " 2.md")
        copy.write_bytes((vault / kept.path("manifest")).read_bytes() + b"a line of mine\n")
        (vault / kept.path("summary")).write_bytes(b"damaged")
        agent.send(signal.SIGHUP)  # a full pass
        until(gone(copy), "merged")
        assert not copy.exists(), agent.output()
        until(lambda: status(vault)["violations"] == [kept.path("summary")], "a violation")
        assert "of another version" not in agent.output()
    finally:
        agent.close()


def test_only_what_a_service_manager_started_is_started_again() -> None:
    assert is_restarted(SYSTEMD) and is_restarted(LAUNCHD)
    assert not any(map(is_restarted, TERMINALS))


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
