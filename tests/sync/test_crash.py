"""A command killed at every step that changes something durable: the next ordinary pass makes all of it good."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from hashlib import sha256

import artifacts_fixture as made
import crash_runner
import pytest
from crash_runner import MINE
from workbench import NOW, ROOT, Vault, numbered, spawn

from signet_sync.formats.body import body_sha256, normalize
from signet_sync.formats.frontmatter import parse

RUNNER = ROOT / "tests" / "support" / "crash_runner.py"
slow = pytest.mark.slow


def path_of(kind, number):
    who = numbered(number)
    return made.path_for(kind, session_id=who["session_id"], captured_at=who["captured_at"])


def prepare(folder, scenario):
    """A vault of three sessions in the state in which the scenario's command is killed."""
    vault = Vault(folder / "vault")
    vault.session(1)
    vault.session(2)
    vault.session(3, body="# Third\n\n## Decisions\n\n- The zzxvcanary of lantern stays.\n")
    os.makedirs(os.environ["SIGNET_STATE"], exist_ok=True)
    fresh = scenario in ("first", "index-only")
    (vault / "MEMORY.md").write_bytes(MINE)
    if not fresh:
        vault.reindex()
        vault.hits("number1x")
    allowed = {}
    for path in vault.memory.glob("*--*--*.md"):
        if "manifest" not in path.name:
            allowed[path.name] = [sha256(path.read_bytes()).hexdigest()]
    if scenario == "changed":
        vault.session(4)
        path = vault / path_of("transcript", 4)
        allowed[path.name] = [sha256(path.read_bytes()).hexdigest()]
        (vault / path_of("manifest", 2)).unlink()
    if scenario in ("restore", "accept"):
        path = vault / path_of("summary", 1)
        path.write_bytes(path.read_bytes() + b"edited\n")
        allowed[path.name].append(sha256(path.read_bytes()).hexdigest())
        (vault / path_of("transcript", 2)).unlink()
        del allowed[path_of("transcript", 2).removeprefix("memory/")]
    if scenario == "restore":
        replaced = vault / path_of("transcript", 1)
        replaced.unlink()
        replaced.mkdir()
        (replaced / "in-its-place.txt").write_text("mine")
        del allowed[replaced.name]
    if scenario == "accept":
        vault.reindex()
        document = parse(path.read_bytes())
        old = document.fields["content_sha256"].encode()
        new = body_sha256(normalize(document.body)).encode()
        allowed[path.name].append(sha256(path.read_bytes().replace(old, new)).hexdigest())
    shutil.copytree(vault.root, folder / "before")
    shutil.copytree(os.environ["SIGNET_STATE"], folder / "state-before")
    told = {
        "artifacts": allowed,
        "remove": numbered(3)["session_id"],
        "removed": [path_of(kind, 3).removeprefix("memory/") for kind in ("summary", "transcript")],
        "accept": path_of("summary", 1),
    }
    (folder / "prepared.json").write_text(json.dumps(told))


def swept(folder, scenario, every=1):
    """What the runner says of every step."""
    done = subprocess.run(
        [sys.executable, RUNNER, folder, scenario, str(every)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "SIGNET_STATE": str(folder / "machine" / "state")},
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


# Those that tests/reliability/test_crash_points.py has no like of are tried at a few steps in every run.
SCENARIOS = ["first", "restore", "accept"]
SCENARIOS += [pytest.param(name, marks=slow) for name in ("index-only", "changed", "full", "remove")]


@pytest.mark.parametrize("every", [167, pytest.param(1, marks=slow)])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_command_killed_at_any_step_is_made_good_by_the_next_pass(tmp_path, scenario, every):
    prepare(tmp_path, scenario)
    steps = swept(tmp_path, scenario, every)
    assert [step for step in steps if step["wrong"]] == []
    assert steps[-1]["label"] == "end" and len(steps) > 1
    if every == 1:
        labels = {step["label"].removeprefix("before ").removeprefix("after ") for step in steps}
        assert len(steps) > 14 and "commit" in labels
        if scenario in ("first", "changed"):
            assert {"fsync", "link", "write", "half a write", "mkdir", "_rename"} <= labels


# ── errors and kills of single system calls, SQLite's own among them ──

strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not here to make system calls fail")
FAULTS = {
    "killed while SQLite writes": ("pwrite64", "signal=KILL"),
    "killed while SQLite syncs": ("fdatasync", "signal=KILL"),
    "disk full": ("write,pwrite64", "error=ENOSPC"),
    "no link": ("linkat", "error=EIO"),
    "no hard links": ("linkat", "error=EPERM"),
    "no exchange": ("renameat2", "error=EINVAL"),
    "fsync fails": ("fsync", "error=EIO"),
    "fdatasync fails": ("fdatasync", "error=EIO"),
    "rename fails": ("rename,renameat,renameat2", "error=EIO"),
    "unlink fails": ("unlink,unlinkat", "error=EBUSY"),
    "no folder": ("mkdir,mkdirat", "error=EROFS"),
}
# These speak for all where nobody asks for the slow ones.
ALWAYS = ("fsync fails",)


@strace
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=slow)], ids=["few", "all"])
@pytest.mark.parametrize("fault", [f if f in ALWAYS else pytest.param(f, marks=slow) for f in FAULTS])
def test_a_system_call_that_fails_loses_nothing(tmp_path, fault, whole):
    prepare(tmp_path, "changed")
    told = json.loads((tmp_path / "prepared.json").read_text())
    calls, what = FAULTS[fault]
    root = tmp_path / "vault"
    failed = 0
    for number in itertools.count(1, 1 if whole else 4):
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(tmp_path / "before", root)
        shutil.rmtree(os.environ["SIGNET_STATE"])
        shutil.copytree(tmp_path / "state-before", os.environ["SIGNET_STATE"])
        log = tmp_path / "strace.log"
        log.unlink(missing_ok=True)
        when = f"{number}" if "EPERM" not in what and "EINVAL" not in what else "1+"
        inject = ["-e", f"trace={calls}", "-e", f"inject={calls}:{what}:when={when}"]
        answer = spawn(
            *("--quiet", "--workspace", root, "reindex", "--now", NOW),
            prefix=["strace", "-f", "-qq", "-o", str(log), *inject],
            environ={"PYTHONDONTWRITEBYTECODE": "1"},
        )
        if not log.exists() or "ptrace" in answer.err:
            pytest.skip("strace may not trace here")
        injected = "INJECTED" in log.read_text() or "KILL" in log.read_text()
        assert answer.code in (0, 3, -9, 137), answer
        assert "Traceback" not in answer.err and answer.err.count("\n") <= 1, answer.err
        if answer.code == 0:
            assert answer.err == ""
        failed += injected
        crash_runner.recover(root, told["artifacts"], [], heal=False)
        assert json.loads((tmp_path / "wrong.json").read_text()) == [], (number, answer)
        for leftover in tmp_path.glob("scratch.db*"):
            leftover.unlink()
        if not injected or when == "1+" or (not whole and number > 4):
            break
    assert failed or calls == "renameat2"
