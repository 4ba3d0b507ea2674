"""`fleet check`: what `check` says of every workspace, added up; each ends in exactly one state, on every engine."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from test_fleet_share import all_rows
from workbench import NOW, Vault, call, spawn, spawn_ordinary, tree

LOCAL, RAY = ("--workers", "2"), ("--engine", "ray", "--workers", "2")


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """A good workspace, a damaged one, an empty one, one whose memory/ is a file, and a link to another."""
    good, bad = Vault(tmp_path / "fleet/ada"), Vault(tmp_path / "fleet/ben o'neil")
    good.session(1)
    for number in (1, 2):
        paths = bad.session(number)
    (bad / paths["summary"]).write_bytes(b"\0\xff" * 3_000)
    os.mkfifo(bad / "memory/2026-03-28T10-01-00.000Z--aaaaaaaaaaaaaaaa--summary.md")
    (bad / "signet-sync.toml").write_text("[\n")
    Vault(tmp_path / "fleet/cay")
    (tmp_path / "fleet/dee").mkdir()
    (tmp_path / "fleet/dee/memory").write_bytes(b"no folder")
    (tmp_path / "fleet/eve").symlink_to(Vault(tmp_path / "home").root)
    return tmp_path / "fleet"


@pytest.mark.parametrize("engine", [LOCAL, pytest.param(RAY, marks=pytest.mark.slow)])
def test_it_says_what_check_says_and_names_every_state(fleet: Path, tmp_path: Path, engine: tuple[str, ...]) -> None:
    if engine is RAY:
        pytest.importorskip("ray")
    before = tree(fleet)
    where = (f"{fleet}/*", tmp_path / "gone", "ftp://127.0.0.1:1/x")
    answer = (spawn if engine is RAY else call)("fleet", "check", *where, *engine, "--json", "--now", NOW)
    assert answer.code == 1 and tree(fleet) == before, answer
    expected, counts = list[Any](), Counter[str]()
    for name in ("ada", "ben o'neil", "cay"):
        document = call("--workspace", fleet / name, "check", "--json", "--now", NOW).json
        expected += [{"workspace": str(fleet / name), **problem} for problem in document["problems"]]
        counts.update(document["counts"])
    assert answer.json["counts"] == dict(counts) and answer.json["problems"] == expected
    states = {one["workspace"].rpartition("/")[2]: one["state"] for one in answer.json["workspaces"]}
    assert states == {
        "ada": "ok", "ben o'neil": "damaged", "cay": "empty", "dee": "damaged", "eve": "damaged", "gone": "vanished",
        "x": "unreachable",
    }  # fmt: skip
    assert answer.json["states"] == {state: list(states.values()).count(state) for state in answer.json["states"]}
    answer = call("fleet", "check", fleet / "ada", fleet / "ben o'neil", "--workers", "1")
    assert answer.code == 1 and f"damaged  {fleet}/ben o'neil  3 of its files" in answer.out
    assert "1 ok, 1 damaged" in answer.out


@pytest.mark.slow
def test_ray_writes_the_same_tables(fleet: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    for place, engine in (("here", LOCAL), ("ray", RAY)):
        words = ("--at", tmp_path / place, "--holds", "text", "--now", NOW)
        assert (spawn if engine is RAY else call)("fleet", "share", f"{fleet}/*", *words, *engine).code == 1
    here, ray = (
        {path.relative_to(tmp_path / place): path.read_bytes() for path in (tmp_path / place).rglob("*.*")}
        for place in ("here", "ray")
    )
    assert here == ray
    assert all_rows(tmp_path / "ray")["sessions"]


def test_a_workspace_that_may_not_be_read_is_unreachable(fleet: Path) -> None:
    (fleet / "ada").chmod(0)
    try:
        answer = spawn_ordinary("fleet", "check", fleet / "ada", "--workers", "1")
        assert answer.code == 1 and "unreachable" in answer.out, answer
    finally:
        (fleet / "ada").chmod(0o700)
