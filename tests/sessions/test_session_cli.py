"""`session end` and `session compact` as a person meets them: help, stdin, plain output, JSON, exit codes."""

from __future__ import annotations

import json
import shlex
import sqlite3
import subprocess
import sys
from dataclasses import fields

import pytest
from session_inputs import FIRST, SECOND, SENTENCE, document, end, ledger, moment, say, written
from workbench import ROOT, Vault, call, spawn

from signet_sync.sessions.input import SessionInput

SECRET = "ghp_" + "Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe9Dc8"


@pytest.fixture
def vault(tmp_path):
    return Vault(tmp_path / "vault")


def put(vault, **given):
    place = vault.root.parent / "input.json"
    place.write_text(json.dumps(document(**given)))
    return str(place)


def test_the_help_names_every_field():
    told = call("session", "end", "--help").out
    assert all(f'"{f.name}"' in told for f in fields(SessionInput) if f.name not in ("tail", "more"))
    assert '"transcript_is"' in told and "Example:" in told
    assert all(len(line) <= 110 for line in told.splitlines())
    assert '"compaction"' in call("session", "compact", "--help").out
    listed = call("session", "--help").out
    assert not any(line.startswith("  ") and line.endswith("...") for line in listed.splitlines()), listed


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


def test_json_is_one_document_and_nothing_else(vault):
    answer = spawn("--workspace", vault.root, "session", "end", "--json", "--input", put(vault))
    assert answer.code == 0 and answer.err == ""
    assert answer.json["agent_id"] == "default"


def test_an_error_is_one_line_with_path_and_remedy(vault):
    vault.memory.rmdir()
    vault.memory.write_text("")
    answer = vault.call("session", "end", "--input", put(vault))
    assert answer.code == 3 and answer.out == ""
    assert answer.err.count("\n") == 1 and "[memory]" in answer.err and " — " in answer.err


def test_bad_input_touches_nothing(vault, tmp_path):
    answer = say(vault, session_id="")
    assert answer.code == 2
    assert not (tmp_path / "machine" / "state").exists() and not (vault.root / ".signet").exists()


def test_an_error_on_stdin_says_so(vault):
    answer = spawn("--workspace", vault.root, "session", "end", "--input", "-", input=b"{")
    assert answer.code == 2 and "not JSON" in answer.err and "Traceback" not in answer.err


def test_the_agent_of_option_and_document_must_agree(vault):
    assert end(vault, options=("--agent", "nova"))["agent_id"] == "nova"
    assert end(vault, agent_id="nova", options=("--agent", "nova"))["idempotent_replay"]
    answer = say(vault, agent_id="ada", options=("--agent", "nova"))
    assert answer.code == 2 and "--agent" in answer.json["error"]["message"]
    assert say(vault, options=("--agent", "../x")).json["error"]["code"] == "agent-invalid"


def test_an_ending_is_found_by_the_other_commands(vault):
    answer = end(vault, session_key="agent:main/third", captured_at=moment(0))
    end(vault, session_key="agent:main/third", transcript=FIRST + SECOND, captured_at=moment(1))
    opened = vault.call("open", "--json", "agent:main/third").json
    assert [segment["captured_at"] for segment in opened["segments"]] == [moment(0), moment(1)]
    assert opened["manifest"] == answer["manifest"]
    assert vault.hits("gives", "up")
    assert vault.call("status", "--json").json["counts"]["sessions"] == 1


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


def test_an_ending_now_is_on_the_page(vault):
    end(vault, memory_sentence=SENTENCE)
    assert SENTENCE in ledger(vault)[0]


def test_nothing_heavy_is_loaded_for_help():
    code = (
        "import sys; from signet_sync.cli.main import run; run(['session', 'end', '--help']); "
        "print([name for name in ('apsw', 'pydantic', 'loguru', 'rich') if name in sys.modules], file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_what_a_model_failed_at_is_one_plain_line(vault, tmp_path, monkeypatch):
    mine = tmp_path / "mine.toml"
    mine.write_text('[llm]\nprovider = "command"\ncommand = ["false"]\n')
    monkeypatch.setenv("SIGNET_CONFIG", str(mine))
    answer = vault.spawn("session", "end", "--input", put(vault, summary=None))
    assert answer.code == 0
    assert answer.err.startswith("warning: command gave no summary: ") and answer.err.count("\n") == 1
