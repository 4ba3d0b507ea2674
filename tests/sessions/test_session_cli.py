"""`session end` and `session compact` as a person meets them: help, stdin, plain output, JSON, exit codes."""

from __future__ import annotations

import json
import shlex
import sqlite3

import pytest
from session_inputs import FIRST, SENTENCE, document, end, moment, say, written
from workbench import call, spawn

SECRET = "ghp_" + "Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe9Dc8"


def put(vault, **given):
    place = vault.root.parent / "input.json"
    place.write_text(json.dumps(document(**given)))
    return str(place)


@pytest.mark.parametrize("command", ["end", "compact"])
def test_the_example_of_the_help_works(vault, command):
    told = call("session", command, "--help").out
    (example,) = [line.strip() for line in told.splitlines() if line.strip().startswith("echo ")]
    said, rest = example.split(" | ")
    (text,) = shlex.split(said)[1:]
    arguments = shlex.split(rest)[1:]
    answer = spawn("--workspace", vault.root, *arguments, input=text.encode())
    assert answer.code == 0, answer
    assert vault.call("check").code == 0 and len(written(vault)) in (2, 3)


def test_the_plain_answer_names_the_files_and_what_was_redacted(vault):
    source = put(vault, transcript=f"{FIRST}\n{SECRET}\n", memory_sentence=SENTENCE, captured_at=moment(0))
    answer = vault.call("session", "end", "--input", source)
    assert answer.code == 0 and answer.err == ""
    lines = answer.out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["summary", "transcript", "manifest"]
    assert all((vault / line.split()[1]).is_file() for line in lines[:3])
    assert lines[3] == SENTENCE
    assert lines[4].startswith("Redacted: ") and SECRET not in answer.out
    again = vault.call("session", "end", "--input", source)
    assert again.out.splitlines()[0].startswith("nothing new") and again.out.splitlines()[1:] == lines


def test_the_agent_of_option_and_document_must_agree(vault):
    assert end(vault, options=("--agent", "nova"))["agent_id"] == "nova"
    assert end(vault, agent_id="nova", options=("--agent", "nova"))["idempotent_replay"]
    answer = say(vault, agent_id="ada", options=("--agent", "nova"))
    assert answer.code == 2 and "--agent" in answer.json["error"]["message"]
    assert say(vault, options=("--agent", "../x")).json["error"]["code"] == "agent-invalid"


def test_a_database_elsewhere_and_none_at_all(vault, tmp_path):
    elsewhere = tmp_path / "elsewhere.db"
    arguments = ["session", "end", "--json", "--input", put(vault, captured_at=moment(0))]
    first = vault_json(call("--workspace", vault.root, "--db", elsewhere, *arguments))
    assert sqlite3.connect(elsewhere).execute("select count(*) from memory_artifacts").fetchone()[0] == 3
    for place in (":memory:", tmp_path / "third.db"):
        again = vault_json(call("--workspace", vault.root, "--db", place, *arguments))
        assert again == {**first, "idempotent_replay": True}
    assert len(written(vault)) == 3


def vault_json(answer):
    assert answer.code == 0, answer
    return answer.json


def test_what_a_model_failed_at_is_one_plain_line(vault, tmp_path, monkeypatch):
    mine = tmp_path / "mine.toml"
    mine.write_text('[llm]\nprovider = "command"\ncommand = ["false"]\n')
    monkeypatch.setenv("SIGNET_CONFIG", str(mine))
    answer = vault.spawn("session", "end", "--input", put(vault, summary=None))
    assert answer.code == 0
    assert answer.err.startswith("warning: command gave no summary: ") and answer.err.count("\n") == 1
