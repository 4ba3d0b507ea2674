"""Real transcripts of every harness: by hook, import and sweep the same artifacts, sound, and never twice."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
from session_inputs import body, fields, journal, segments, sound, written
from transcript_builder import import_, waited
from transcripts import SAMPLES
from workbench import Vault, contents, spawn

from signet_sync.capture import capture, transcripts
from signet_sync.capture.harnesses.markdown import render

FOLDERS = {
    "claude-code": "claude-code", "codex": "codex", "gemini": "gemini", "opencode": "opencode",
    "openclaw": "openclaw-pi",
}  # fmt: skip
# What these hold no turns of, and why; of the others each is one session.
NOTHING = {
    "ccusage-chat.jsonl": "bookkeeping only", "obra-medium.jsonl": "bookkeeping only",
    "ccusage-session-alpha.jsonl": "bookkeeping only", "cc-2.1.330-subagent-sidecar.jsonl": "sub-agent",
}  # fmt: skip


def real() -> list[object]:
    """One parameter for each file that may be a transcript."""
    found = [
        pytest.param(harness, path, id=path.name, marks=[] if number == 0 else pytest.mark.slow)
        for harness, folder in FOLDERS.items()
        for number, path in enumerate(sorted((SAMPLES / folder).glob("*.db" if harness == "opencode" else "*.jsonl")))
    ]
    skipped = pytest.mark.skip(reason="the sample transcripts are not here")
    return found or [pytest.param("", Path(), marks=skipped)]


def session_id(harness: str, path: Path) -> str:
    (source,) = transcripts.sources(harness, where=str(path))
    return capture.read(source).session_id


def hooked(vault: Vault, harness: str, path: Path) -> None:
    """The end of the session, as the harness tells of it; waits until nothing is left to do."""
    payload = {
        "session_id": session_id(harness, path) or "unnamed", "transcript_path": str(path), "cwd": "/home/ada",
        "hook_event_name": "SessionEnd",
    }  # fmt: skip
    answer = spawn(
        *("--workspace", vault.root, "hook", harness, "--strict"), input=json.dumps(payload).encode(), cwd="/"
    )
    assert (answer.code, answer.err) == (0, "")
    for _ in range(2):  # a name may be missed by a look while its file is replaced
        assert waited(lambda: not list((vault.state / "spool").glob("*.json")) and not journal(vault))
        time.sleep(0.1)


@pytest.mark.parametrize(("harness", "sample"), real())
def test_by_hook_and_by_import_the_same_and_never_twice(tmp_path, vault, harness, sample):
    # A copy: the samples may belong to somebody else, or lie where SQLite cannot put its index beside them.
    path = tmp_path / "here" / sample.name
    path.parent.mkdir()
    shutil.copyfile(sample, path)
    hooked(vault, harness, path)
    other = Vault(tmp_path / "other")
    done = import_(other, harness, path)
    assert written(vault) == written(other)
    for kind in ("transcript", "summary", "compaction"):
        assert segments(vault, kind) == segments(other, kind)
    if sample.name in NOTHING:
        assert written(vault) == [] and NOTHING[sample.name] in done["nothing"][0]["reason"]
        return
    sound(vault)
    sound(other)
    (source,) = transcripts.sources(harness, where=str(path))
    conversation = capture.read(source)
    (transcript,) = written(vault, "transcript")
    head = fields(vault, transcript)
    assert (head["session_id"], head["session_key"], head["harness"], head["agent_id"]) == (
        conversation.session_id, conversation.session_id, harness, "default",
    )  # fmt: skip
    assert head["captured_at"] == head["ended_at"]
    for entry in conversation.entries:
        if entry.kind in ("user", "assistant"):
            assert entry.text.strip().split("\n")[0].split()[0] in body(vault, transcript)
    assert len(render(conversation.entries)) > 0
    before = contents(vault.root)
    assert import_(vault, harness, path, "--again")["segments"] == []
    shutil.rmtree(vault.state)
    assert import_(vault, harness, path)["segments"] == []
    assert contents(vault.root) == before
