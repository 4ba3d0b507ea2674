"""What a session hands over to another agent: how it stands, cited, within its tokens; no agent remembers it again."""

from __future__ import annotations

import os
from pathlib import Path

import harness_samples
import pytest
from harness_samples import PROJECT, SESSION, Turn
from workbench import Vault, numbered

from signet_sync.capture.harnesses import registry
from signet_sync.formats.managed_block import CLOSING, OPENING
from signet_sync.pages.operations import HANDOFF_LIMIT
from signet_sync.text.token_estimate import estimate_tokens

AGENTS = [name for name in registry.names() if registry.facts(name).first_prompt]
LOOP = "The retry loop of the queue gives up after five tries and says so in the log."
TURNS = [
    Turn("user", "Why does the retry loop give up? We use five tries everywhere."),
    Turn("call", "Edit", {"file_path": f"{PROJECT}/src/queue.py"}, "done"),
    Turn("call", "bash", {"command": "git commit -m 'Five tries'"}, "[main 1f2e3d4] Five tries\n 1 file changed"),
    Turn("call", "bash", {"command": "git commit -qm 'Say so'"}, "done"),
    Turn("call", "bash", {"command": "gh pr create --title 'Give up'"}, "https://example.org/ada/lantern/pull/12"),
    Turn("assistant", f"{LOOP}\n\nOutcome: the loop ends\nNext: measure the queue at night\nTried: backoff by hand"),
]


def test_it_says_how_a_session_stands(vault: Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "person"
    monkeypatch.setenv("HOME", str(home))
    files = [Turn("call", "Edit", {"file_path": f"{PROJECT}/src/part{number}.py"}, "done") for number in range(40)]
    for number, turns in enumerate([TURNS, [Turn("user", f"Polish the brass. {LOOP * 40}"), *files, TURNS[-1]]]):
        session = SESSION[:-1] + str(number)
        os.utime(harness_samples.write("claude-code", home, turns, session=session), (1.7e9 + number, 1.7e9 + number))
    assert vault.call("import", "claude-code").code == 0

    first = vault.call("handoff", f"{SESSION[:-1]}0", "--json").json
    for told in (
        "commit 1f2e3d4: Five tries", "- commit: Say so", "pull request #12: Give up",
        "changed: src/queue.py", "^s-", "^f-",
        "measure the queue at night", "backoff by hand", LOOP,
    ):  # fmt: skip
        assert told in first["text"], first["text"]
    newest = vault.call("handoff", "--project", PROJECT, "--json").json
    assert newest["session_id"] in (f"{SESSION[:-1]}0", f"{SESSION[:-1]}1")
    second = vault.call("handoff", f"{SESSION[:-1]}1", "--json").json
    assert "and 20 more" in second["text"]
    assert newest["text"].rpartition("\n=== ")[0].count("loop ends") == 1, "what came out stands once"
    for one in (first, newest, second):
        assert one["text"].startswith(OPENING) and one["text"].endswith(CLOSING)
        assert one["tokens"] == estimate_tokens(one["text"]) <= HANDOFF_LIMIT
    assert vault.call("handoff", "--project", "/elsewhere").code == vault.call("handoff", "nobody").code == 2


def test_another_agent_begins_with_it(vault: Vault, tmp_path: Path) -> None:
    """And what any harness has of that prompt is no memory, but for the request."""
    vault.indexed(1)
    harness = AGENTS[0]
    programs, told = tmp_path / "bin", tmp_path / "told"
    programs.mkdir()
    program = programs / registry.facts(harness).first_prompt[0]
    program.write_text(f'#!/bin/sh\nfor one in "$@"; do last=$one; done\nprintf %s "$last" > {told}\n')
    program.chmod(0o700)
    path = f"{programs}:{os.environ['PATH']}"
    answer = vault.spawn("handoff", numbered(1)["session_id"], "--to", harness, environ={"PATH": path})
    assert answer.code == 0, answer
    prompt = told.read_text()
    assert "bounded the retry loop" in prompt and prompt.endswith(f"{CLOSING}\n\nGo on with this work.")
    for harness in AGENTS:
        turns = [Turn("user", prompt), Turn("assistant", "I do.")]
        written = harness_samples.write(harness, tmp_path / harness, turns)
        said = [one.text.strip() for one in harness_samples.read(harness, written).entries]
        assert said == ["Go on with this work.", "I do."], harness
