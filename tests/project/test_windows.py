"""Windows is not supported: one sentence at start, before anything is imported that is not there; no hook fails."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from workbench import ROOT

# What Python has on Linux alone is not there on Windows.
START = """
import sys
sys.platform = "win32"
for name in ("fcntl", "pwd", "resource", "termios", "select"):
    sys.modules[name] = None
sys.argv = ["signet-sync", *sys.argv[1:]]
import runpy
runpy.run_module("signet_sync", run_name="__main__")
"""


def on_windows(*words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", START, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input="{}",
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_one_sentence_says_so() -> None:
    code, out, err = on_windows("status")
    assert (code, out) == (2, "")
    assert err == "signet-sync: Windows is not supported; it runs on Linux and macOS, and on Windows inside WSL\n"


@pytest.mark.parametrize(("harness", "answer"), [("claude-code", ""), ("gemini", "{}\n")])
def test_a_hook_fails_no_session(harness: str, answer: str) -> None:
    assert on_windows("hook", harness) == (0, answer, "")
