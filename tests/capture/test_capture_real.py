"""Real transcripts of every harness: by hook, import and sweep the same artifacts, sound, and never twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from session_inputs import body, fields, journal, segments, sound, written
from transcript_builder import import_, worker
from transcripts import SAMPLES
from workbench import Vault, contents

from signet_sync.capture import capture, transcripts
from signet_sync.storage import state_dir

FOLDERS = {
    "claude-code": "claude-code", "codex": "codex", "gemini": "gemini", "opencode": "opencode",
    "openclaw": "openclaw-pi",
}  # fmt: skip
# What these hold no turns of, and why; of the others each is one session.
NOTHING = {
    "ccusage-chat.jsonl": "no conversation", "obra-medium.jsonl": "no conversation",
    "ccusage-session-alpha.jsonl": "no conversation", "cc-2.1.330-subagent-sidecar.jsonl": "sub-agent",
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


@pytest.mark.parametrize(("harness", "sample"), real())
def test_by_hook_and_by_import_the_same_and_never_twice(tmp_path, vault, harness, sample):
    # A copy: the samples may belong to somebody else, or lie where SQLite cannot put its index beside them.
    path = tmp_path / "here" / sample.name
    path.parent.mkdir()
    shutil.copyfile(sample, path)
    (source,) = transcripts.sources(harness, where=str(path))
    conversation = capture.read(source)
    given = {"session_id": conversation.session_id or "unnamed", "transcript_path": str(path), "cwd": "/home/ada"}
    state_dir.write_heartbeat(state_dir.locate(str(vault.root)), {"state": "watching"})  # no worker is started
    answer = vault.hook(harness, "--strict", given=json.dumps(given | {"hook_event_name": "SessionEnd"}).encode())
    assert (answer.code, answer.err) == (0, "") and worker(vault).code == 0
    assert not list((vault.state / "spool").glob("*.json")) and not journal(vault)
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
    (transcript,) = written(vault, "transcript")
    head = fields(vault, transcript)
    assert (head["session_id"], head["session_key"], head["harness"], head["agent_id"]) == (
        conversation.session_id, conversation.session_id, harness, "default",
    )  # fmt: skip
    assert head["captured_at"] == head["ended_at"]
    for entry in conversation.entries:
        if entry.kind in ("user", "assistant"):
            assert entry.text.strip().split("\n")[0].split()[0] in body(vault, transcript)
    before = contents(vault.root)
    assert import_(vault, harness, path, "--again")["segments"] == []
    shutil.rmtree(vault.state)
    assert import_(vault, harness, path)["segments"] == []
    assert contents(vault.root) == before
