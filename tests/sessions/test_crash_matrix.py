"""Every flow, killed at every step and with every write failing once: the next pass makes all of it good."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import flow_runner
import pytest
from flow_runner import NOW_US, SECRET
from workbench import Vault

from signet_sync.app.workspace import opened
from signet_sync.formats.turn import Turn
from signet_sync.sessions import live
from signet_sync.sessions import operations as sessions_operations
from signet_sync.sessions.input import session_input
from signet_sync.settings.model import Settings

FIRST_WORDS = (
    "## User\n\nWhy does the queue of lantern never drain?\n\n## Assistant\n\nsrc/queue.py retries for ever.\n"
)
MORE_WORDS = "\n## User\n\nBound it.\n\n## Assistant\n\nDone: five attempts, then src/queue.py gives up.\n"
SUMMARY = "# Queue\n\n## Decisions\n\n- lantern bounds the retry loop of src/queue.py at five attempts.\n"
SENTENCE = "Bounded the retry loop of src/queue.py in lantern at five attempts so that the queue drains in the end."
THIRD = {
    "session_id": "5e551003-0000-4000-8000-000000000003",
    "session_key": "agent:main/third",
    "project": "/home/me/lantern",
    "harness": "codex",
}
FOURTH = {**THIRD, "session_id": "5e551004-0000-4000-8000-000000000004", "session_key": None}
MOMENT = "2026-03-29T11:30:00.000Z"

DOCUMENTS: dict[str, dict[str, Any]] = {
    "end": {
        **FOURTH,
        "captured_at": MOMENT,
        "ended_at": MOMENT,
        "transcript": f"{FIRST_WORDS}\nThe key was {SECRET} then.\n",
        "summary": SUMMARY,
        "memory_sentence": SENTENCE,
    },
    "digest": {**FOURTH, "transcript": f"{FIRST_WORDS}\nThe key was {SECRET} then.\n", "idempotency_key": "once"},
    "segment": {**THIRD, "captured_at": MOMENT, "transcript": FIRST_WORDS + MORE_WORDS, "summary": SUMMARY},
    "parts": {**FOURTH, "captured_at": MOMENT, "transcript": FIRST_WORDS + MORE_WORDS * 90, "summary": SUMMARY},
    "compaction": {**THIRD, "captured_at": MOMENT, "compaction": f"{SUMMARY}\nThe key was {SECRET} then.\n"},
    "first compaction": {**FOURTH, "agent_id": "nova", "captured_at": MOMENT, "compaction": SUMMARY},
}
PASSES = ["manifests", "projection", "full"]
SCENARIOS = [*DOCUMENTS, "removal", *PASSES]
# So many points are there at least, by fault; fewer mean that a write has slipped out of sight.
LEAST = {"kill": 30, "EIO": 15, "ENOSPC": 15, "sqlite-kill": 20, "sqlite-EIO": 20, "sqlite-ENOSPC": 15}


def prepare(folder: Path, scenario: str) -> None:
    """A vault of three sessions, two by other programs and one by us, in the state in which the scenario begins."""
    vault = Vault(folder / "vault")
    first = vault.session(1)
    vault.session(2)
    with opened(str(vault.root), Settings()) as workspace:
        third = {**THIRD, "captured_at": "2026-03-26T10:03:00.000Z", "transcript": FIRST_WORDS, "summary": SUMMARY}
        sessions_operations.end(workspace, session_input(third, now_us=NOW_US), now_us=NOW_US)
        said = [Turn(1, "user", "Bound it.", MOMENT), Turn(2, "assistant", "The heron of lantern waits.", MOMENT)]
        live.append(workspace, said, agent_id="default", session_key=THIRD["session_key"])
        live.append(workspace, said[:1], agent_id="default", session_key="somebody else's")
        of_the_fourth = {"agent_id": "nova", "session_key": FOURTH["session_id"]}
        live.append(workspace, said, **of_the_fourth)
    vault.reindex()
    if scenario == "manifests":
        (vault / first["manifest"]).unlink()
    if scenario == "projection":
        vault.session(4)
        (vault / "MEMORY.md").write_bytes(b"# Mine\n" + (vault / "MEMORY.md").read_bytes() + b"mine too\n")
        next(vault.root.glob("ledger/*/*/*.md")).unlink()
    if scenario == "full":
        vault.session(4)
        for place in vault.state.glob("signet-sync.db*"):
            place.unlink()  # a rebuild from the files and the backup of what is not in them
    shutil.copytree(vault.root, folder / "before")
    shutil.copytree(os.environ["SIGNET_STATE"], folder / "state-before")
    (folder / "prepared.json").write_text(json.dumps({"documents": DOCUMENTS, "remove": THIRD["session_id"]}))


swept = partial(flow_runner.swept, prepare)


few_and_all = pytest.mark.parametrize("every", [397, pytest.param(1, marks=pytest.mark.slow)], ids=["few", "all"])
# A scenario takes its seconds however few its points are: one speaks for all where nobody asks for the slow ones.
# tests/reliability/test_crash_points.py tries others in every run.
ALWAYS = ["compaction"]


def some(scenarios: list[str]) -> list[Any]:
    return [one if one in ALWAYS else pytest.param(one, marks=pytest.mark.slow) for one in scenarios]


@pytest.mark.slow
@few_and_all
@pytest.mark.parametrize("scenario", some(SCENARIOS))
def test_what_was_begun_is_finished_or_was_never_there(tmp_path, scenario, every):
    for lines in swept(tmp_path, scenario, ["kill", "EIO", "ENOSPC"], every):
        fault = lines[0]["fault"]
        assert lines[-1]["label"] == "end" and lines[-1]["ended"] == "answered"
        assert max(line["point"] for line in lines) > LEAST[fault]
        if every == 1:
            labels = {line["label"].removeprefix("before ").removeprefix("after ") for line in lines}
            assert {"fsync", "write", "unlink", "commit", "_rename", "replace"} <= labels
            assert {"killed" if fault == "kill" else "refused"} < {line["ended"] for line in lines}
            outcomes = {line["outcome"] for line in lines}
            assert "all" in outcomes and ("nothing" in outcomes) == (scenario not in PASSES)
            assert ("part" in outcomes) == (scenario == "parts")


@pytest.mark.slow
def test_a_fault_inside_sqlite_is_no_different(tmp_path):
    for lines in swept(tmp_path, "end", ["sqlite-kill", "sqlite-EIO", "sqlite-ENOSPC"], 1):
        assert max(line["point"] for line in lines) > LEAST[lines[0]["fault"]]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["end", "removal", "segment", "compaction"])
def test_a_recovery_that_is_killed_is_recovered_from(tmp_path, scenario):
    (lines,) = swept(tmp_path, scenario, ["kill"], 5, 5)
    assert len(lines) >= 5
