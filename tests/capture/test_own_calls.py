"""What our own tools gave back is old memory: no transcript of any harness brings it into the vault again."""

import json

import pytest
from transcripts import jsonl

from signet_sync.capture.harnesses.claude_code import transcript as claude_code
from signet_sync.capture.harnesses.codex import transcript as codex
from signet_sync.capture.harnesses.gemini import transcript as gemini
from signet_sync.capture.harnesses.markdown import render
from signet_sync.capture.harnesses.openclaw import transcript as openclaw
from signet_sync.capture.harnesses.opencode import transcript as opencode
from signet_sync.capture.harnesses.opencode.transcript import MessageRow
from signet_sync.cli.commands import COMMANDS
from signet_sync.digest.notes import turn_notes
from signet_sync.digest.outcome import outcome
from signet_sync.digest.turns import turns_of
from signet_sync.text.own_calls import LEFT_OUT, QUIET, TOOLS, is_own_tool, runs_us

OLD = "the lantern key lies under the third stone"
ANSWER = json.dumps({"hits": [{"text": OLD}], "more": None})
AT = "2026-03-28T22:34:06.792Z"


def from_claude(*calls):
    """One record a call and one a result, as Claude Code writes them."""
    records = []
    for number, (name, given, back) in enumerate(calls):
        use = {"type": "tool_use", "id": f"t{number}", "name": name, "input": given}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": [{"type": "text", "text": back}]}
        for kind, block in (("assistant", use), ("user", result)):
            records.append({"type": kind, "sessionId": "s", "timestamp": AT, "message": {"content": [block]}})
        records[-1]["toolUseResult"] = {"structuredContent": {"hits": [{"text": back}]}}
    return claude_code.read(jsonl(*records)).entries


def from_codex(*calls):
    records = []
    for number, (name, given, back) in enumerate(calls):
        space, _, last = name.rpartition("__")
        call = {"type": "function_call", "name": last, "arguments": json.dumps(given), "call_id": f"c{number}"}
        call |= {"namespace": space} if space else {}
        output = {
            "type": "function_call_output",
            "call_id": f"c{number}",
            "output": f"Wall time: 0.1 seconds\nOutput:\n{back}",
        }
        records += [{"timestamp": AT, "type": "response_item", "payload": one} for one in (call, output)]
        ended = {"invocation": {"server": space, "tool": last}, "result": {"Ok": {"structuredContent": {"text": back}}}}
        records.append({"timestamp": AT, "type": "event_msg", "payload": {"type": "mcp_tool_call_end", **ended}})
        item = {
            "type": "mcp_tool_call", "server": space, "tool": last, "result": {"structured_content": {"text": back}},
        }  # fmt: skip
        records.append({"timestamp": AT, "type": "response_item", "payload": item})
    return codex.read(jsonl(*records)).entries


def from_gemini(*calls):
    records = [{"sessionId": "s"}]
    for number, (name, given, back) in enumerate(calls):
        response = {"functionResponse": {"id": f"g{number}", "name": name, "response": {"output": back}}}
        call = {"id": f"g{number}", "name": name, "args": given, "result": [response], "status": "success"}
        call |= {"displayName": name, "resultDisplay": back}
        records.append({"id": f"m{number}", "type": "gemini", "timestamp": AT, "content": "", "toolCalls": [call]})
        parts = {"id": f"u{number}", "type": "user", "timestamp": AT, "content": [response]}
        records.append(parts)
    return gemini.read(jsonl(*records)).entries


def from_opencode(*calls):
    parts = []
    for number, (name, given, back) in enumerate(calls):
        state = {"status": "completed", "input": given, "output": back, "metadata": {"structuredContent": back}}
        parts.append((f"p{number}", json.dumps({"type": "tool", "tool": name, "callID": f"o{number}", "state": state})))
    message = MessageRow("m", json.dumps({"role": "assistant", "time": {"created": 1}}), parts)
    return opencode.read({"id": "s"}, [message]).entries


def from_openclaw(*calls):
    records = []
    for number, (name, given, back) in enumerate(calls):
        use = {"type": "toolCall", "id": f"w{number}", "name": name, "arguments": given}
        records.append({"role": "assistant", "content": [use]})
        result = {"role": "toolResult", "toolCallId": f"w{number}", "toolName": name}
        records.append({**result, "content": [{"type": "text", "text": back}], "details": {"structuredContent": back}})
    return openclaw.read(jsonl(*({"type": "message", "timestamp": AT, "message": one} for one in records))).entries


READERS = [from_claude, from_codex, from_gemini, from_opencode, from_openclaw]
SPELLINGS = [
    "mcp__signet-sync__{}", "mcp__my_memory__{}", "mcp_signet-sync_{}", "signet-sync_{}", "{}", "signet_sync__{}",
]  # fmt: skip


@pytest.mark.parametrize("read", READERS)
def test_results_of_our_tools_are_left_out(read):
    for spelling in SPELLINGS:
        found = read((spelling.format("memory_recall"), {"query": "where is the key"}, ANSWER), ("Bash", {}, "kept"))
        assert OLD not in repr(found), spelling
        assert [entry.kind for entry in found].count("tool") == 2
        shown = render(found)
        assert "memory_recall" in shown and LEFT_OUT in shown and "kept" in shown


@pytest.mark.parametrize("read", READERS)
def test_so_are_those_of_shell_calls_that_run_us(read):
    found = read(
        ("Bash", {"command": "cd /x && signet-sync recall 'the key'"}, OLD),
        ("exec_command", {"cmd": "python -m signet_sync --workspace ~/v search key > /tmp/found.txt"}, OLD),
        ("shell", {"command": ["bash", "-lc", "SIGNET_WORKSPACE=/v signet-sync expand m-abcd | head"]}, OLD),
        ("Read", {"file_path": "/tmp/found.txt"}, OLD),
        ("Bash", {"command": "grep -rn 'signet-sync recall' docs"}, "docs/recall.md:3"),
    )
    assert OLD not in repr(found) and "docs/recall.md:3" in repr(found)


@pytest.mark.parametrize("read", READERS)
def test_so_is_a_result_that_the_harness_put_aside(read):
    """It then comes in a later record, by another tool."""
    aside = "/home/ada/.claude/projects/x/tool-results/t1.txt"
    found = read(
        ("mcp__signet-sync__memory_expand", {}, f"Output too large. Full output saved to: {aside}"),
        ("Read", {"file_path": aside}, OLD),
        ("Bash", {"command": "signet-sync context"}, "Command running in background with ID: b7f3a1. Go on."),
        ("BashOutput", {"bash_id": "b7f3a1"}, OLD),
        ("Bash", {"command": f"tail -3 {aside}"}, OLD),
        ("BashOutput", {"bash_id": "other1"}, "another"),
    )
    assert OLD not in repr(found) and "another" in repr(found)


def test_codex_goes_on_with_a_process_and_calls_tools_from_programs():
    found = from_codex(
        ("exec_command", {"cmd": "signet-sync recall key"}, ""),
        ("exec", {"input": "const r = await tools.mcp__signet_sync__memory_recall({query: 'x'}); text(r)"}, OLD),
    )
    assert OLD not in repr(found)
    head = "Chunk ID: 1\nWall time: 1 seconds\nProcess running with session ID 51234\nOutput:\n"
    records = [
        {"type": "function_call", "name": "exec_command", "arguments": '{"cmd": "signet-sync recall key"}',
         "call_id": "1"},
        {"type": "function_call_output", "call_id": "1", "output": head},
        {"type": "function_call", "name": "write_stdin", "arguments": '{"session_id": 51234}', "call_id": "2"},
        {"type": "function_call_output", "call_id": "2", "output": OLD},
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


@pytest.mark.parametrize("read", READERS)
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


@pytest.mark.parametrize("command", ["signet-sync notes Next: oil it", "echo Next: oil it all", "rg note Next: oil it"])
def test_other_commands_are_no_notes(command):
    text = f"## User · {AT}\n\nPlease repair it.\n\n- `bash` · {AT} · `{command}`\n"
    assert turn_notes(turns_of(text)[0]) == []
