"""Ends or fails an operation at one system call after the other, as strace injects it, and has it recovered.

`python call_faults.py NAME FOLDER FAULTS EVERY` wants what `operations.prepare` has made in FOLDER. A first run under
strace, undisturbed, tells which calls write something down; then each EVERY-th of them is met by each of FAULTS
(`KILL`, or the name of an error; with commas between). A fault `CALL=ERROR` is met by every such call of one run.
It prints a JSON line a point: the call and its number, the
fault, whether it was met, how the run ended, what a pass made of it and what is wrong: nothing is an empty list. The
last line says how many such calls there are.

Python and all that it imports are paid for once: each run is a fork that waits until strace has taken hold of it.
"""

from __future__ import annotations

import ctypes
import io
import json
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import operations
from crash_runner import KILLED
from flow_runner import REFUSED, refused
from recovery import Bench, versions, wanted

CALLS = (
    "openat", "write", "pwrite64", "fsync", "fdatasync", "rename", "renameat", "renameat2", "link", "linkat", "unlink",
    "unlinkat", "ftruncate", "mkdir", "mkdirat", "rmdir",
)  # fmt: skip
_CALL = re.compile(r"^(\d+) +(?:\d+\.\d+ )?(\w+)\((.*)")
_PR_SET_PTRACER, _ANYBODY = 0x59616D61, ctypes.c_ulong(-1)
_ENDS = {0: "answered", REFUSED: "refused", KILLED: "killed", -9: "killed"}


class NoTracing(Exception):
    """strace may not take hold of another process here."""


def traced(bench: Bench, *options: str) -> tuple[int, list[str]]:
    """Runs the operation once under strace; how it ended, and what strace wrote down."""
    log = bench.folder / "strace.log"
    log.unlink(missing_ok=True)
    waits, goes = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            os.close(goes)
            ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANYBODY, 0, 0, 0)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.read(waits, 1)
            code = refused(bench.scenario.work, bench.root)
        finally:
            os._exit(code)
    os.close(waits)
    strace = subprocess.Popen(
        ["strace", "-f", "-y", "-s", "0", "-o", log, *options, "-p", str(pid)], stderr=subprocess.PIPE, text=True
    )
    assert strace.stderr is not None
    held = "attached" in strace.stderr.readline()
    os.write(goes, b"x")
    os.close(goes)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    strace.stderr.read()
    strace.wait()
    if not held:
        raise NoTracing
    return code, log.read_text(errors="replace").splitlines()


def points(bench: Bench) -> list[tuple[str, int]]:
    """Every call that writes something down below the folder, as its name and its number among those of its name."""
    bench.put_back()
    code, lines = traced(bench, "-e", f"trace={','.join(CALLS)}")
    assert code == 0, code
    counts: dict[tuple[str, str], int] = {}
    found: dict[tuple[str, int], None] = {}
    for line in lines:
        call = _CALL.match(line)
        if call is None:
            continue
        thread, name, given = call.groups()
        counts[thread, name] = counts.get((thread, name), 0) + 1
        creates = name != "openat" or "O_CREAT" in given
        if creates and str(bench.folder) in given:
            found[name, counts[thread, name]] = None
    return list(found)


def struck(bench: Bench, name: str, number: int | str, fault: str) -> tuple[bool, int]:
    """Runs the operation with a fault at one call (`1+`: at all); whether it met it, and how it ended."""
    bench.put_back()
    what = "signal=KILL" if fault == "KILL" else f"error={fault}"
    code, lines = traced(bench, "-e", f"trace={name}", "-e", f"inject={name}:{what}:when={number}")
    met = any("(INJECTED)" in line or "killed by SIGKILL" in line for line in lines)
    return met, code


def main() -> int:
    """See the module."""
    name, folder, faults, every = sys.argv[1], Path(sys.argv[2]), sys.argv[3].split(","), int(sys.argv[4])
    operation = operations.OPERATIONS[name]
    bench = Bench(folder, operation.scenario(operation.prepared(folder)))
    with redirect_stdout(io.StringIO()):
        aim = wanted(bench)
    aim["whole"] = versions(bench.recorded())
    try:
        calls = points(bench)
    except NoTracing:
        print(json.dumps({"untraced": True}))
        return 0
    known: set[str] = set()
    for place, fault in enumerate(faults):
        # Another share of the calls for each fault, where not all are visited.
        where: list[tuple[str, int | str]] = [*calls[place % every :: every]]
        if "=" in fault:
            call, _, fault = fault.partition("=")
            where = [(call, "1+")]
        for call, number in where:
            met, code = struck(bench, call, number, fault)
            ended = _ENDS.get(code, f"exit {code}")
            # What asks a model on its own answers nobody, and tries again.
            found = bench.judged(code == 0 and (bench.here / "answer.json").exists(), aim, known)
            if code not in _ENDS:
                found["wrong"].append(f"it ended with {code}")
            point = {"call": call, "number": number, "fault": fault, "met": met, "ended": ended}
            print(json.dumps(point | found), flush=True)
    print(json.dumps({"calls": len(calls)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
