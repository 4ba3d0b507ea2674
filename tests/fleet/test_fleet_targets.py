"""Targets of a fleet: what names what, each once, and errors that say where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from signet_sync.errors import ConfigError, SignetSyncError, UsageError
from signet_sync.fleet import targets


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three workspaces, a folder that is none, and the current folder above them."""
    for name in ("ada", "ben", "team/cay"):
        (tmp_path / "agents" / name / "memory").mkdir(parents=True)
    (tmp_path / "agents" / "notes").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(fleet: Path, *named: str) -> list[str]:
    """The names of workspaces below the folder of agents."""
    return [os.path.relpath(one, fleet / "agents") for one in targets.workspaces(named)]


def test_folders_and_globs(fleet: Path) -> None:
    assert found(fleet, "agents/ada") == found(fleet, str(fleet / "agents/ada/")) == ["ada"]
    assert found(fleet, "agents/*") == ["ada", "ben"]
    assert found(fleet, "agents/**") == ["ada", "ben", "team/cay"]
    assert found(fleet, "agents/[ab]*", "agents/team/ca?") == ["ada", "ben", "team/cay"]
    # What is named is taken as it is: a worker says what is wrong with it.
    assert found(fleet, "agents/notes", "agents/gone") == ["gone", "notes"]


def test_each_is_there_once(fleet: Path) -> None:
    (fleet / "link").symlink_to(fleet / "agents/ada")
    assert found(fleet, "agents/ada", "agents/*", f"file://{fleet}/agents/ada", "agents/../agents/ada") == [
        "ada",
        "ben",
    ]
    assert found(fleet, "link", "agents/ada") == ["ada"]
    assert targets.workspaces(["S3://bucket/ada/", "s3://bucket/ada"]) == ["s3://bucket/ada"]


def test_a_name_may_look_like_a_glob(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (fleet / "agents/[x]/memory").mkdir(parents=True)
    assert found(fleet, "agents/[x]") == ["[x]"]
    (fleet / "agents/[x]/dee/memory").mkdir(parents=True)
    monkeypatch.chdir(fleet / "agents/[x]")
    assert found(fleet, "*") == ["[x]/dee"]


def test_a_glob_follows_no_link(fleet: Path) -> None:
    """An agent may put a link among the workspaces, but not choose what is read with it."""
    outside = fleet / "home/.agents"
    (outside / "memory").mkdir(parents=True)
    (fleet / "agents/eve").symlink_to(outside)
    (fleet / "agents/fay").mkdir()
    (fleet / "agents/fay/memory").symlink_to(outside / "memory")
    (fleet / "agents/group").symlink_to(fleet / "home")
    assert found(fleet, "agents/*") == ["ada", "ben"]
    assert found(fleet, "agents/**") == ["ada", "ben", "team/cay"]
    with pytest.raises(UsageError, match="finds no workspace"):
        targets.workspaces(["agents/*/.agents"])
    (fleet / "all").symlink_to(fleet / "agents")
    assert [os.path.basename(one) for one in targets.workspaces(["all/*"])] == ["ada", "ben"]


def test_lists(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (fleet / "list").write_text("# agents\n\nagents/ada\n  agents/b*  \ns3://bucket/cay\n")
    assert targets.workspaces(["@list"]) == [f"{fleet}/agents/ada", f"{fleet}/agents/ben", "s3://bucket/cay"]
    (fleet / "list").write_text("agents/ada\nagents/none*\n")
    with pytest.raises(ConfigError) as raised:
        targets.workspaces(["@list"])
    assert (raised.value.message, raised.value.path) == ("line 2: this finds no workspace: agents/none*", "list")
    (fleet / "list").write_text("# nothing\n")
    with pytest.raises(ConfigError, match="names no workspace"):
        targets.workspaces(["@list"])
    (fleet / "list").write_bytes(b"agents/ada\nagents/\xff\n")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        targets.workspaces(["@list"])
    with pytest.raises(ConfigError, match="No such file"):
        targets.workspaces(["@gone"])


def test_urls_without_secrets() -> None:
    assert targets.workspaces(["git:///srv/lantern:main@agents"]) == ["git:///srv/lantern:main@agents"]
    assert targets.workspaces(["sftp://ada@example.org/srv"])
    for secret in (
        "s3://key:hunter2@bucket/ada",
        "sftp://ada:hunter2@example.org/srv",
        "zip://ada::https://hunter2@example.org/build.zip",
    ):
        with pytest.raises(UsageError) as raised:
            targets.workspaces([secret])
        assert "hunter2" not in f"{raised.value.message} {raised.value.path} {raised.value.hint}"
        assert raised.value.code == "secret-in-url"


@pytest.mark.parametrize("target", ["", "s3://", "git:///srv/*", "zip:///srv/*.zip"])
def test_what_is_no_target(target: str) -> None:
    with pytest.raises(UsageError) as raised:
        targets.workspaces([target])
    assert raised.value.hint


def test_globs_of_urls() -> None:
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for name in ("globbed/ada/memory/a.md", "globbed/ben/memory/b.md", "globbed/notes/c.md", "globbed/d.md"):
        store.pipe_file(name, b"")
    try:
        assert targets.workspaces(["memory://globbed/*"]) == ["memory://globbed/ada", "memory://globbed/ben"]
        with pytest.raises(UsageError, match="finds no workspace"):
            targets.workspaces(["memory://globbed/n*"])
    finally:
        store.rm("globbed", recursive=True)
    with pytest.raises(SignetSyncError, match="no way to read nosuch"):
        targets.workspaces(["nosuch://bucket/*"])


def test_the_input_is_a_list(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.write(write, b"agents/ada\n")
    os.close(write)
    before = os.dup(0)
    try:
        os.dup2(read, 0)
        assert found(fleet, "@-") == ["ada"]
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(read)
