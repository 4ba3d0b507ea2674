"""One system call after the other that writes something down is killed or fails: a pass makes all of it good."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter

import call_faults
import operations
import pytest
from workbench import ROOT

FAULTS = ["KILL", "EIO", "ENOSPC"]
# These meet every fault at every call; elsewhere each call meets one of the faults, the next call the next.
IN_FULL = ("publish", "session end")
EVERY = int(os.environ.get("PROOF_EVERY", len(FAULTS)))

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not here to make system calls fail")


def run_faults(name, folder, faults, every):
    """What became of an operation under each of the faults, a line a point; the last line says how many calls."""
    operations.prepare(name, folder)
    done = subprocess.run(
        [sys.executable, call_faults.__file__, name, folder, ",".join(faults), str(every)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=3600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("name", operations.OPERATIONS)
def test_a_call_that_fails_or_is_the_last_one_loses_nothing(tmp_path, figure, name):
    every = 1 if name in IN_FULL else EVERY
    *lines, whole = run_faults(name, tmp_path, FAULTS, every)
    if whole.get("untraced"):
        pytest.skip("strace may not trace here")
    wrong = [line for line in lines if line["wrong"]]
    assert wrong == [], "\n".join(map(str, wrong[:5])) + f"\n{len(wrong)} of {len(lines)} points"
    visited = {(line["call"], line["number"]) for line in lines if line["met"]}
    print(f"{name}: {whole['calls']} calls, {len(lines)} runs, {dict(Counter(line['ended'] for line in lines))}")
    figure("calls that write something down, in all operations", whole["calls"], "calls")
    figure("of these killed, failed with EIO or failed with ENOSPC", len(visited), "calls")
    figure("of these all three", len(visited) if every == 1 else 0, "calls")
    figure("runs recovered", len(lines), "runs")
    figure("violations", len(wrong))
    assert len(visited) >= 0.9 * whole["calls"] if every <= len(FAULTS) else visited
    assert {line["ended"] for line in lines} <= {"answered", "refused", "killed"}


# What a file system may not have at all, each time it is asked for it.
NEVER = {
    "no hard links": "linkat=EPERM",
    "no exchange": "renameat2=EINVAL",
    "no deletion": "unlinkat=EBUSY",
    "no new folder": "mkdirat=EROFS",
}


@pytest.mark.parametrize(
    "what", [what if what == "no deletion" else pytest.param(what, marks=pytest.mark.slow) for what in NEVER]
)
def test_a_file_system_without_a_call_loses_nothing(tmp_path, what):
    """Where the call never works another one is found, or it is refused; nothing is lost, and a pass tidies up."""
    *lines, whole = run_faults("first index", tmp_path, [NEVER[what]], 1)
    if whole.get("untraced"):
        pytest.skip("strace may not trace here")
    assert [(line["met"], line["wrong"]) for line in lines] == [(True, [])]
