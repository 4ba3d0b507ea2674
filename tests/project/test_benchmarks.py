"""Benchmarks measure what is there: functions that they time, and every line of their table."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from benchmarks import bench, flow


@pytest.mark.parametrize("watched", flow.WATCHED)
def test_what_is_timed_is_there(watched: str) -> None:
    place, name = flow.place_of(watched)
    assert callable(getattr(place, name))


def test_a_line_says_whether_its_goal_was_met() -> None:
    met, missed, free = (
        bench.Row("cold large", "15,000", "1 s", "1 s", 1.25),
        bench.Row("cold large", "15,000", "2 s", "1 s", 2.0),
        bench.Row("modules", "15,000", "7", "", 0),
    )
    lines = bench.table([met, missed, free], judged=True).splitlines()[2:]
    assert lines[0].endswith("| 1.25 × | ≤ 1.25 × | met |")
    assert lines[1].endswith("| 2.00 × | ≤ 1.25 × | **missed** |")
    assert lines[2].endswith("|  |  |  |")
    assert "met" not in bench.table([met, missed], judged=False)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("syncthing") is None, reason="syncthing is not installed")
def test_two_machines_with_syncthing_lose_nothing() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.syncthing", "--minutes", "0.5"], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
