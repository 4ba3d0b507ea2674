"""A removal across the fleet that is killed at any of its steps is finished by the same command."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from crash_runner import KILLED, arm, forked
from test_fleet_removal import ID, holding, in_this_process, plan, remove, subject  # noqa: F401
from workbench import NOW, ROOT, Vault, call, contents, spawn

from signet_sync.fleet.removal import journal

EVERY = 9  # steps from one kill to the next


def apply(path: Path, step: int = 0) -> int:
    """Carries out a plan; killed at a step, if one is given."""
    if step:
        arm(step)
    return call("fleet", "remove", "--apply", path, "--json", "--now", NOW).code


def kept(vault: Vault) -> dict[str, str]:
    """The sealed files of the other sessions."""
    found = contents(vault.memory)
    return {path: found[path] for path in found if path.endswith(("--summary.md", "--transcript.md"))}


@pytest.mark.slow
def test_killed_at_any_step_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ground, before, path = tmp_path / "ground", tmp_path / "before", tmp_path / "ground" / "plan.json"
    monkeypatch.setenv("SIGNET_STATE", str(ground / "state"))
    monkeypatch.chdir(tmp_path)
    vaults = [Vault(ground / name) for name in ("one", "two")]
    for vault in vaults:
        vault.session(2)
        subject(vault)
    vaults[0].reindex()
    plan(path, ground / "one", ground / "two", "--session", ID)
    remove("--approve", path, "--by", "Grace")
    shutil.copytree(ground, before, symlinks=True)
    others = [{p: c for p, c in kept(vault).items() if ID not in (vault.memory / p).read_text()} for vault in vaults]
    step, killed = 1, 0
    while True:
        shutil.rmtree(ground)
        shutil.copytree(before, ground, symlinks=True)
        code = forked(apply, path, step)
        where = Path("killed-at").read_text() if code == KILLED else ""
        assert forked(apply, path) == 0, where
        for vault, other in zip(vaults, others, strict=True):
            assert holding(vault.root) == [] and kept(vault) == other, where
            assert len(list((vault / "memory/tombstones").iterdir())) == 1, where
        assert holding(ground / "state") == [], where
        report = json.loads(Path(f"{path}.report.json").read_text())
        assert report["counts"] == {"removed": 2}, where
        assert [len(row["files"]) for row in report["workspaces"]] == [3, 3], where
        place = f"{path}.journal.jsonl"
        lines = journal.read(Path(place).read_bytes(), place)
        assert report["journal_sha256"] == lines[-1]["hash"], where
        assert not [name for name in os.listdir(ground) if name.endswith(".tmp")], where
        if code != KILLED:
            break
        killed += 1
        step += EVERY
    assert code == 0 and killed > 20


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_an_engine_carries_out_a_plan_and_a_killed_driver_is_started_again(tmp_path: Path, engine: str) -> None:
    """Twelve workspaces; the driver is killed as soon as its journal has the first of them, with what it started."""
    if engine == "ray":
        pytest.importorskip("ray", reason="pip install ray")
    vaults = [Vault(tmp_path / f"w{number:02}") for number in range(12)]
    for vault in vaults:
        vault.session(2)
        subject(vault)
    path = tmp_path / "plan.json"
    words = ("--engine", engine, "--workers", "2")
    plan(path, tmp_path / "w*", "--session", ID)
    remove("--approve", path, "--by", "Grace")
    command = [sys.executable, "-m", "signet_sync", "fleet", "remove", "--apply", str(path), "--now", NOW, *words]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    driver = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL)
    place = Path(f"{path}.journal.jsonl")
    while driver.poll() is None and not (place.exists() and b'"workspace"' in place.read_bytes()):
        time.sleep(0.005)
    driver.kill()
    assert driver.wait(60) == -signal.SIGKILL, "it was done before it could be killed"
    answer = spawn("fleet", "remove", "--apply", str(path), "--json", "--now", NOW, *words)
    assert answer.code == 0, answer
    assert answer.json["counts"] == {"removed": 12}
    assert [len(row["files"]) for row in answer.json["workspaces"]] == [3] * 12
    assert [path for vault in vaults for path in holding(vault.root)] == []
