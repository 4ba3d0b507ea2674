"""What is remembered in a repository is of its project: no other one is told of it, and recall says whose it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from workbench import Vault

from signet_sync.pages.project_context import ProjectInputs
from signet_sync.pages.store.project_inputs import project_inputs
from signet_sync.storage.database.connection import Database
from signet_sync.storage.locations import locate

PORT = "The gateway listens on port 7707."


def remembered(vault: Vault, *more: str) -> str | None:
    project: str | None = vault.call("remember", PORT, "--json", *more).json["project"]
    return project


def told(vault: Vault, project: str) -> ProjectInputs:
    database = Database(locate(str(vault.root)).database, readonly=True)
    try:
        return project_inputs(database, "default", 1 << 60, lambda one: one == project)
    finally:
        database.connection.close()


def test_a_memory_knows_its_project(vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = tmp_path / "gateway"
    (gateway / ".git").mkdir(parents=True)
    (gateway / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (gateway / "src").mkdir()
    monkeypatch.chdir(gateway / "src")
    assert remembered(vault) == str(gateway)
    assert "(gateway, remembered" in (vault.root / "MEMORY.md").read_text()
    (hit,) = vault.call("recall", "gateway port", "--json").json["hits"]
    assert "a remembered note of gateway" in hit["why"]
    assert vault.call("recall", "port", "--project", "lantern", "--json").json["hits"] == []
    assert [one.content for one in told(vault, str(gateway)).memories] == [PORT]
    assert told(vault, "/home/ada/lantern").memories == ()
    assert remembered(vault, "--everywhere") is None  # said for all, it is for all
    assert [one.content for one in told(vault, "/home/ada/lantern").memories] == [PORT]
    assert remembered(vault) is None
