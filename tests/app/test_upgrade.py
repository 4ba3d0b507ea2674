"""Another version is installed while the agent runs: it is started by the service manager, and no row is harmed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import agents
import apsw
import pytest
from agents import Inside, Session, known, until
from workbench import ROOT, Vault

import signet_sync
from signet_sync.app.daemon import EXIT_CODE, identify_installation, is_restarted
from signet_sync.storage.database.tables import VERSION

quick = agents.quick


SYSTEMD, LAUNCHD = {"NOTIFY_SOCKET": "/run/notify"}, {"XPC_SERVICE_NAME": "dev.signet-sync.agent.notes-0a1b2c3d"}
TERMINALS = ({}, {"XPC_SERVICE_NAME": "0"}, {"XPC_SERVICE_NAME": "application.com.apple.Terminal.1"})


def test_another_version_on_the_disk_is_a_reason_to_end_and_a_missing_one_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version_file = tmp_path / "__init__.py"
    version_file.write_text('__version__ = "0.1.0"\n')
    monkeypatch.setattr(signet_sync, "__file__", str(version_file))
    ours = identify_installation()
    os.utime(version_file, ns=(0, version_file.stat().st_mtime_ns))  # read
    os.link(version_file, version_file.with_name("kept by a cache"))
    assert identify_installation() == ours
    version_file.unlink()
    assert identify_installation() is None
    version_file.write_text('__version__ = "0.2.0"\n')
    assert identify_installation() not in (ours, None)


@pytest.mark.usefixtures("quick")
def test_an_agent_ends_for_what_is_installed_under_it(
    vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version_file = tmp_path / "__init__.py"
    version_file.write_text('__version__ = "0.1.0"\n')
    monkeypatch.setattr(signet_sync, "__file__", str(version_file))
    with Inside(vault, ours=identify_installation()) as agent:
        agent.wait("watching")
        assert agent.code is None
        version_file.write_text('__version__ = "9.9.9"\n')
        until(lambda: agent.code is not None, "ended")
    assert agent.code == EXIT_CODE and not (vault.state / "heartbeat.json").exists()


def test_once_at_work_it_loads_nothing_of_what_is_installed_under_it() -> None:
    """Modules that functions import are those of the version that it is."""
    code = """
import ast, pathlib, sys
from signet_sync.app import daemon
daemon.load_all()
root = pathlib.Path(daemon.__file__).parents[1]
packages = ("app", "sync", "pages", "privacy", "sessions", "graph")
for path in (one for package in packages for one in root.glob(f"{package}/**/*.py")):
    for node in ast.walk(ast.parse(path.read_text())):
        name = isinstance(node, ast.ImportFrom) and node.module or ""
        ours = name.startswith("signet_sync.") and name.split(".")[1] not in daemon._OF_COMMANDS
        if ours and name not in sys.modules:
            print(path.name, name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == ""


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
