"""What we leave behind ourselves, and what is told twice, makes no memory: counts stay however often all is read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from session_inputs import segments
from test_import import FILES, spoken
from transcript_builder import TranscriptBuilder, fire, import_, plugged_in, provider, store, worker

from signet_sync.capture import capture
from signet_sync.capture.harnesses import opencode
from signet_sync.capture.harnesses.opencode import MessageRow
from signet_sync.capture.harnesses.records import Conversation
from signet_sync.capture.stores.transcripts import TranscriptSource
from signet_sync.formats.ids import MODEL_FOLDER, MODEL_MARK

QUESTION = f"You sum up sessions.\n\n{MODEL_MARK}\nProject: lantern\n<session-1>\nWe chose zebrafish.\n</session-1>"
# A model that is a harness: it leaves the question, or what it makes of it, as a session of its own.
LEAVES_A_SESSION = """
import json, os, pathlib, re, uuid
session, cwd = str(uuid.uuid4()), os.getcwd()
folder = pathlib.Path.home() / ".claude/projects" / re.sub("[^A-Za-z0-9]", "-", cwd)
folder.mkdir(parents=True, exist_ok=True)
said = [("user", "Please sum up this loopword session"), ("assistant", "The loopword is fixed in src/queue.py.")]
records = [
    {"type": role, "uuid": str(n), "sessionId": session, "cwd": cwd, "timestamp": f"2026-03-20T11:00:0{n}.000Z",
     "message": {"role": role, "content": text}}
    for n, (role, text) in enumerate(said)
]
path = folder / f"{session}.jsonl"
path.write_text("".join(json.dumps(one) + chr(10) for one in records))
os.utime(path, (1.7e9, 1.7e9))
print("The queue of src/queue.py waits no more; all 31 tests pass.")
"""


@pytest.fixture
def home() -> Path:
    return Path(os.environ["HOME"])


# ── sessions of the model that we ask ───────────────────────────────────────────────────────────────────────────────


def test_five_imports_and_a_sweep_after_a_model_that_leaves_sessions_capture_none(vault, home, tmp_path):
    talk = TranscriptBuilder(store(home))
    talk.exchange(1)
    talk.idle()
    provider(tmp_path, LEAVES_A_SESSION)
    plugged_in(vault, "claude-code")
    for _ in range(5):
        import_(vault, "claude-code")
        assert len(segments(vault)) == 1
    left = list((home / ".claude/projects").rglob("*.jsonl"))
    assert len(left) == 3, "one question for the summary, one for the sentence"
    assert worker(vault, sweep=True).code == 0
    assert import_(vault, "claude-code", "--again")["segments"] == []
    assert len(segments(vault)) == 1 and not vault.hits("loopword")
    assert len(list((home / ".claude/projects").rglob("*.jsonl"))) == 3
    for path in left:
        path.touch()  # changed since it was read
        os.utime(path, (1.6e9, 1.6e9))
    assert "import 1 past session (" in vault.call("setup", "--dry-run", "--json").json["steps"][2]["text"]


def parsed(harness: str, tmp_path: Path, cwd: str, asked: str) -> Conversation:
    """What is read of a session of one question and its answer."""
    if harness == "opencode":
        rows = [
            MessageRow(role, json.dumps({"role": role}), [("p", json.dumps({"type": "text", "text": text}))])
            for role, text in (("user", asked), ("assistant", "because of zebrafish"))
        ]
        return capture._without_own_calls(opencode.read({"id": "ses_a", "directory": cwd}, rows))
    path = tmp_path / f"{FILES[harness]}.jsonl"
    path.write_text(spoken(harness, "12345678-0000-4000-8000-000000000000", cwd, asked))
    return capture.read(TranscriptSource(harness, str(path), "", 1, 1))


@pytest.mark.parametrize("harness", [*FILES, "opencode"])
def test_every_harness_s_session_of_our_question_is_recognised(tmp_path, harness):
    somewhere, ours = "/home/ada/lantern", f"/home/ada/.local/state/signet-sync/{MODEL_FOLDER}"
    assert parsed(harness, tmp_path, somewhere, "why does it never drain").turns == 2
    for cwd, asked in ((somewhere, QUESTION), (ours, "why does it never drain"), (ours + "/", QUESTION)):
        found = parsed(harness, tmp_path, cwd, asked)
        assert (found.turns, capture._why_empty(found)) == (0, capture.OWN_CALL)
    quoted = parsed(harness, tmp_path, somewhere, f"what does {MODEL_MARK} mean?")
    assert quoted.turns == 2, "within a line it is a quotation"


def test_a_question_among_a_person_s_turns_takes_its_answer_with_it(vault, home):
    """A gateway may keep all that it is asked in one session."""
    talk = TranscriptBuilder(store(home))
    talk.exchange(1)
    talk.user(QUESTION, 20)
    talk.assistant("We chose zebrafish, it says.", 21)
    talk.exchange(3)
    talk.idle()
    import_(vault, "claude-code")
    (text,) = segments(vault)
    assert "question1word" in text and "answer3word" in text and "zebrafish" not in text


def test_a_hook_of_our_question_does_nothing_whatever_its_environment(vault, home):
    talk = TranscriptBuilder(store(home))
    talk.exchange(1)
    for given in ({"cwd": f"/srv/{MODEL_FOLDER}"}, {"event": "UserPromptSubmit", "prompt": QUESTION}):
        answer = fire(vault, talk, **given)
        assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert not list((vault.state / "spool").glob("*.json"))
