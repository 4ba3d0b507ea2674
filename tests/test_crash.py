"""A command killed at every step that changes something durable: the next ordinary pass makes all of it good."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from hashlib import sha256

import artifacts_fixture as made
import pytest
from crash_runner import MINE
from workbench import ROOT, Vault, numbered

from signet_sync.contracts.bodies import body_sha256, normalize
from signet_sync.contracts.frontmatter import parse

RUNNER = ROOT / "tests" / "crash_runner.py"


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
    if scenario == "restore":
        (vault / path_of("transcript", 2)).unlink()
        del allowed[path_of("transcript", 2).removeprefix("memory/")]
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
    (folder / "told.json").write_text(json.dumps(told))


def swept(folder, scenario, every=1):
    """What the runner says of every step."""
    done = subprocess.run(
        [sys.executable, RUNNER, folder, scenario, str(every)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "SIGNET_STATE": str(folder / "machine" / "state")},
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("scenario", ["first", "index-only", "changed", "full", "remove", "restore", "accept"])
def test_a_command_killed_at_any_step_is_made_good_by_the_next_pass(tmp_path, scenario):
    prepare(tmp_path, scenario)
    steps = swept(tmp_path, scenario)
    assert [step for step in steps if step["wrong"]] == []
    assert steps[-1]["label"] == "end" and len(steps) > 5
    labels = {step["label"].removeprefix("before ").removeprefix("after ") for step in steps}
    assert {"commit", "checkpoint"} <= labels
    if scenario in ("first", "changed"):
        assert {"fsync", "link", "write", "half a write", "mkdir"} <= labels
