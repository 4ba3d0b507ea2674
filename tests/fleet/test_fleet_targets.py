"""Targets of a fleet: what names what, each once and with a state, and errors that say where."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from signet_sync.errors import ConfigError, UsageError
from signet_sync.fleet import targets


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three workspaces, a folder that is none, links, a folder with a name like a glob; the current one is above."""
    for name in ("ada", "ben", "team/cay", "[x]"):
        (tmp_path / "agents" / name / "memory").mkdir(parents=True)
    (tmp_path / "agents/notes").mkdir()
    (tmp_path / "agents/file").write_text("")
    (tmp_path / "home/.agents/memory").mkdir(parents=True)
    (tmp_path / "agents/eve").symlink_to(tmp_path / "home/.agents")
    (tmp_path / "link").symlink_to(tmp_path / "agents/ada")
    (tmp_path / "all").symlink_to(tmp_path / "agents")
    (tmp_path / "list").write_text("# agents\n\nagents/ada\n  agents/b*  \ns3://bucket/cay\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("agents/ada", "ada"),
        ("agents/ada/ agents/../agents/ada link", "ada"),
        ("agents/[ab]* agents/team/ca?", "ada ben team/cay"),
        ("agents/*", "[x] ada ben eve:damaged notes team"),
        ("all/[ab]*", "ada ben"),
        ("agents/[x]", "[x]"),
        ("agents/notes agents/gone", "gone notes"),  # a worker says what is wrong with it
        ("agents/z*", "z*:vanished"),
        ("@list", "ada ben s3://bucket/cay"),
        ("S3://bucket/ada/ s3://bucket/ada", "s3://bucket/ada"),
        ("git:///srv/lantern:main@agents", "git:///srv/lantern:main@agents"),
        ("memory://none/*", "memory://none/*:vanished"),
    ],
)
def test_what_targets_match(fleet: Path, named: str, expected: str) -> None:
    above = f"{fleet}/agents/"
    found = {name.removeprefix(above): state for name, (state, _) in targets.matches(named.split()).items()}
    assert [f"{name}:{state}" if state else name for name, state in found.items()] == expected.split()


@pytest.mark.parametrize(
    "target",
    [
        "", "s3://", "git:///srv/*", "zip:///srv/*.zip", "nosuch://bucket/*", "s3://key:hunter2@bucket/ada",
        "sftp://ada:hunter2@example.org/srv", "zip://ada::https://hunter2@example.org/build.zip",
    ],
)  # fmt: skip
def test_what_is_no_target(fleet: Path, target: str) -> None:
    with pytest.raises(UsageError) as raised:
        targets.matches([target])
    assert raised.value.hint and "hunter2" not in f"{raised.value.message} {raised.value.path} {raised.value.hint}"


def test_a_faulty_list_names_its_line_and_the_input_is_one(fleet: Path) -> None:
    for text, says in (("agents/ada\ns3://\n", "line 2"), (b"agents/\xff\n", "is not UTF-8"), (None, "No such file")):
        if text is not None:
            (fleet / "bad").write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(ConfigError, match=says):
            targets.matches(["@bad" if text is not None else "@gone"])
    read, write = os.pipe()
    os.write(write, b"agents/ada\n")
    os.close(write)
    before = os.dup(0)
    try:
        os.dup2(read, 0)
        assert list(targets.matches(["@-"])) == [f"{fleet}/agents/ada"]
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(read)


def test_globs_of_stores(memory: object) -> None:
    for name in ("globbed/ada/memory/a.md", "globbed/notes/c.md", "globbed/d.md"):
        memory.pipe_file(name, b"")  # type: ignore[attr-defined]
    assert list(targets.matches(["memory://globbed/*"])) == ["memory://globbed/ada", "memory://globbed/notes"]
    found = targets.matches(["ftp://127.0.0.1:1/srv/*", "memory://globbed/a*"])
    assert found["ftp://127.0.0.1:1/srv/*"][0] == "unreachable" and found["memory://globbed/ada"] == ("", "")
