"""What our own tools gave back is old memory: no transcript of any harness brings it into the vault again."""

import json

import harness_samples
import pytest
from harness_samples import Turn, require
from transcripts import jsonl

from signet_sync.capture.harnesses.codex import transcript as codex
from signet_sync.capture.harnesses.markdown import render
from signet_sync.cli.commands import COMMANDS
from signet_sync.digest.outcome import outcome
from signet_sync.digest.reports import turn_notes
from signet_sync.digest.turns import turns_of
from signet_sync.text.own_calls import LEFT_OUT, QUIET, TOOLS, is_own_tool, runs_us

OLD = "the lantern key lies under the third stone"
ANSWER = json.dumps({"hits": [{"text": OLD}], "more": None})
AT = "2026-03-28T22:34:06.792Z"


@pytest.fixture
def read(harness, tmp_path):
    """Returns the entries of one record a call and one a result, as each harness writes them."""
    require(harness, "calls")

    def entries(*calls):
        turns = [Turn("call", *one) for one in calls]
        return harness_samples.read(harness, harness_samples.write(harness, tmp_path, turns)).entries

    return entries


SERVERS = ("mcp__signet-sync__", "mcp__my_memory__", "mcp_signet-sync_", "signet-sync_", "", "signet_sync__")


def test_results_of_our_tools_are_left_out(read):
    for server in SERVERS:
        found = read((f"{server}memory_recall", {"query": "where is the key"}, ANSWER), ("Bash", {}, "kept"))
        assert OLD not in repr(found), server
        assert [entry.kind for entry in found].count("tool") == 2
        shown = render(found)
        assert "memory_recall" in shown and LEFT_OUT in shown and "kept" in shown


def test_so_are_those_of_shell_calls_that_run_us(read):
    found = read(
        ("Bash", {"command": "cd /x && signet-sync recall 'the key'"}, OLD),
        ("exec_command", {"cmd": "python -m signet_sync --workspace ~/v search key > /tmp/found.txt"}, OLD),
        ("shell", {"command": ["bash", "-lc", "SIGNET_WORKSPACE=/v signet-sync expand m-abcd | head"]}, OLD),
        ("Bash", {"command": "grep -rn 'signet-sync recall' docs"}, "docs/recall.md:3"),
    )
    assert OLD not in repr(found) and "docs/recall.md:3" in repr(found)


def test_codex_calls_tools_from_programs():
    records = [
        {"type": "function_call", "name": "exec_command", "arguments": '{"cmd": "signet-sync recall key"}',
         "call_id": "1"},
        {"type": "function_call_output", "call_id": "1", "output": OLD},
        {"type": "custom_tool_call", "name": "exec", "input": "await tools.mcp__m__session_open({})", "call_id": "3"},
        {"type": "custom_tool_call_output", "call_id": "3", "output": [{"type": "input_text", "text": OLD}]},
    ]  # fmt: skip
    read = codex.read(jsonl(*({"timestamp": AT, "type": "response_item", "payload": one} for one in records)))
    assert OLD not in repr(read.entries)


def test_others_are_no_tools_of_ours():
    for name in ("Bash", "memory", "memory_recaller", "mymemory_recall", "mcp__files__read_file", "recall", ""):
        assert not is_own_tool(name), name
    for command in (
        "signet-sync status",
        "signet-sync --workspace ~/v doctor",
        "pip install signet-sync",
        "ls signet-sync/recall",
        "git clone x/signet-sync && cd signet-sync && pytest recall",
        "echo signet-sync recall",
        "signet-sync --help",
    ):
        assert not runs_us(command), command
    for command in (
        "signet-sync context --prompt x",
        "/opt/v/bin/signet-sync search a",
        "uvx signet-sync recall b",
        "\nsignet-sync open s",
        "timeout 10 signet-sync --db x expand m",
        "x=$(signet-sync recall c)",
        "mcporter call signet-sync.memory_recall",
    ):
        assert runs_us(command), command


def test_the_names_are_those_that_there_are():
    tools = pytest.importorskip("signet_sync.mcp_server.tools")
    assert set(TOOLS) == {offer.name for offer in tools.OFFERS}
    assert set(COMMANDS) >= QUIET


NOTE = {
    "Outcome": f"the lamp of the north pier burns again{' and again' * 20}",
    "Decided": f"the wick is trimmed to four millimetres{' and not more' * 20}",
    "Next": "oil the hinges of the gallery door",
}
SHELL = " ".join(f'"{label}: {text}"' for label, text in NOTE.items())


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("mcp__signet-sync__memory_note", {"note": "\n".join(f"{label}: {text}" for label, text in NOTE.items())}),
        ("bash", {"command": f"cd /x && signet-sync --workspace /w note {SHELL} 2>/dev/null"}),
    ],
)
def test_the_words_of_a_note_count_and_its_answer_does_not(read, name, given):
    words = "\n\n## Assistant · 2026-03-28T22:35:06.792Z\n\nThat is all for the lamp today.\n"
    asked = "## User · 2026-03-28T22:30:06.792Z\n\nPlease repair the lamp of the pier.\n\n"
    text = asked + render(read((name, given, "understood: Next: burn the pier down"))) + words
    (turn,) = turns_of(text)
    assert {one.label.capitalize(): one.text for one in turn_notes(turn)} == NOTE
    assert [(item.kind, item.who) for item in outcome(text).items] == [("decision", "agent"), ("next", "agent")]
    assert "burn the pier down" not in text and NOTE["Outcome"] in outcome(text).results
