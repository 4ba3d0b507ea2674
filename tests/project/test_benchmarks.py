"""Benchmarks measure what is there: functions that they time, and every line of their table."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from benchmarks import flow


@pytest.mark.parametrize("watched", flow.WATCHED)
def test_what_is_timed_is_there(watched: str) -> None:
    place, name = flow.place_of(watched)
    assert callable(getattr(place, name))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("syncthing") is None, reason="syncthing is not installed")
def test_two_machines_with_syncthing_lose_nothing() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.syncthing", "--minutes", "0.5"], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
