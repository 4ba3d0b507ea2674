"""An index run that ends early at any of its steps: readers see each workspace as before or as after; nothing twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from crash_runner import KILLED, arm, forked
from fleet_tables import files_of, index, manifest, stray
from workbench import NOW, ROOT, Vault, numbered

pytest.importorskip("pyarrow")
STEP = 12  # so many steps lie between two that every run of the suite tries


class Two:
    """Two workspaces that changed since they were indexed: a session came, and one was removed."""

    def __init__(self, folder: Path) -> None:
        self.place, self.kept = folder / "tables", folder / "kept"
        self.vaults = [Vault(folder / name) for name in ("one", "two")]
        for vault in self.vaults:
            vault.session(1)
            vault.session(2)
            vault.reindex()
        self.run()
        shutil.copytree(self.place, self.kept)
        self.before = self.files()
        self.vaults[0].session(3)
        self.vaults[1].call("remove", numbered(2)["session_id"], "--reason", "asked", "--yes", "--now", NOW)
        self.run()
        self.after = self.files()
        assert all(self.before[one] != self.after[one] for one in self.after)

    def run(self) -> int:
        return index(self.place, *(vault.root for vault in self.vaults)).code

    def files(self) -> dict[str, dict[str, str]]:
        return {name: files_of(self.place, name) for name in manifest(self.place)}

    def put_back(self) -> None:
        shutil.rmtree(self.place)
        shutil.copytree(self.kept, self.place)

    def ended_at(self, step: int) -> int:
        """Runs until a step; what readers see then must stand, and the next run ends what is left."""

        def run() -> int:
            os.chdir(self.kept.parent)
            arm(step)
            return self.run()

        self.put_back()
        code = forked(run)
        assert code in (0, KILLED)
        seen = self.files()
        assert all(seen[name] in (self.before[name], self.after[name]) for name in self.after), step
        assert {"missing": [one for one in named(self.place) if not (self.place / one).exists()]} == {"missing": []}
        assert self.run() == 0
        assert self.files() == self.after and stray(self.place) == [], step
        return code


def named(place: Path) -> list[str]:
    return [file["path"] for one in manifest(place).values() for file in one["files"].values()]


@pytest.mark.parametrize("every", [STEP, pytest.param(1, marks=pytest.mark.slow)])
def test_every_step_of_a_run_may_be_the_last(tmp_path: Path, every: int) -> None:
    two, step = Two(tmp_path), 1
    while two.ended_at(step) == KILLED:
        step += every
    assert step > 40


def test_a_run_goes_on_where_a_killed_one_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two = Two(tmp_path)
    two.put_back()

    def run() -> int:
        from signet_sync.fleet.tables.parquet import ParquetTables

        ParquetTables.publish = lambda *_: os._exit(KILLED)  # type: ignore[assignment, return-value]
        return two.run()

    assert forked(run) == KILLED
    assert two.files() == two.before and len(list((two.place / "commits").iterdir())) == 2
    monkeypatch.setattr("signet_sync.sync.reading.judged", None)  # nothing is read again
    assert two.run() == 0
    assert two.files() == two.after and stray(two.place) == []


@pytest.mark.slow
def test_a_driver_killed_at_any_moment_and_started_again_ends_with_every_workspace_once(tmp_path: Path) -> None:
    """Twelve workspaces, of which each run changes some, on a pool of processes; twenty kills."""
    random = Random(5)
    vaults = [Vault(tmp_path / f"w{number:02d}") for number in range(12)]
    for vault in vaults:
        for number in range(1, 6):
            vault.session(number)
    place, names = tmp_path / "tables", [str(vault.root) for vault in vaults]
    words = [
        sys.executable,
        "-m",
        "signet_sync",
        "fleet",
        "index",
        *names,
        "--engine",
        "local",
        "--tables",
        str(place),
        "--now",
        NOW,
    ]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    kills = began = 0
    takes = 5.0
    while kills < 20:
        began += 1
        for vault in random.sample(vaults, 6):
            vault.session(6 + began % 20)
        started = time.monotonic()
        process = subprocess.Popen(words, env=environ, stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            process.wait(random.uniform(0.2, takes))
            takes = max(1.0, (time.monotonic() - started) * 1.1)
        except subprocess.TimeoutExpired:
            # Of half of them the workers too, which otherwise end by themselves.
            (os.killpg if kills % 2 else os.kill)(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
        if (place / "manifest.json").exists():
            assert [one for one in named(place) if not (place / one).exists()] == []
    answer = index(place, *names)
    assert answer.code == 0 and answer.json["workspaces"] == 12
    final = {name: files_of(place, name) for name in names}
    fresh = tmp_path / "fresh"
    index(fresh, *names)
    assert final == {name: files_of(fresh, name) for name in names}
    assert stray(place) == [] and list(manifest(place)) == sorted(names)
    assert json.loads((place / "manifest.json").read_text())["schema"] >= 1


@pytest.mark.slow
def test_ray_writes_the_same_tables(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    two = Two(tmp_path)
    names = [str(vault.root) for vault in two.vaults]
    place = tmp_path / "by-ray"
    words = [sys.executable, "-m", "signet_sync", "fleet", "index", *names, "--workers", "2", "--tables", str(place)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    for state in ("indexed", "unchanged"):
        done = subprocess.run([*words, "--json", "--now", NOW], env=environ, capture_output=True, check=False)
        assert done.returncode == 0 and json.loads(done.stdout)[state] == 2, done
    assert {name: files_of(place, name) for name in names} == two.after and stray(place) == []
