"""Codex's rollouts: response items are the conversation, everything else is context, echo or bookkeeping."""

import json

import pytest
from transcripts import jsonl, kinds, read_sample, samples, words

from signet_sync.capture.harnesses.codex.transcript import read
from signet_sync.capture.harnesses.reader import UNNAMED
from signet_sync.formats.managed_block import CLOSING, OPENING

ID = "01a1ffcf-0000-7000-8000-000000000001"
PREAMBLE = "Another language model started to solve this problem and produced a summary of its thinking. Here it is:\n"


def line(kind, payload, second=0):
    return {"timestamp": f"2026-03-28T22:34:{second:02d}.000Z", "type": kind, "payload": payload}


def meta(**more):
    return line("session_meta", {"id": ID, "cwd": "/home/ada/lantern", "source": "cli", **more})


def message(role, *texts, second=0, kinds=None):
    payload = {"type": "message", "role": role, "content": [{"type": "input_text", "text": text} for text in texts]}
    if kinds:
        payload["internal_chat_message_metadata_passthrough"] = {"content_item_kinds": kinds}
    return line("response_item", payload, second)


def item(kind, **payload):
    return line("response_item", {"type": kind, **payload})


def event(kind, **payload):
    return line("event_msg", {"type": kind, **payload})


def conversation(*records):
    return read(jsonl(*records))


def test_a_conversation():
    found = conversation(
        meta(), message("developer", "be good"),
        message("user", "<environment_context>\n  <cwd>/x</cwd>\n</environment_context>"),
        message("user", "Light the lantern.", second=1, kinds=["user.text"]),
        event("user_message", message="Light the lantern."),
        item("reasoning", summary=[{"type": "summary_text", "text": "hm"}]),
        item("function_call", name="exec_command", arguments='{"cmd": "make light"}', call_id="c1"),
        item("function_call_output", call_id="c1", output="Chunk ID: 1\nProcess exited with code 0\nOutput:\nlit\n"),
        message("assistant", "It is lit.", second=5), event("agent_message", message="It is lit."),
    )  # fmt: skip
    assert kinds(found) == ["user", "tool", "result", "assistant"]
    assert (found.session_id, found.project, found.parent, found.turns) == (ID, "/home/ada/lantern", None, 2)
    tool, back = found.entries[1:3]
    assert (tool.name, tool.text, back.text, back.call, back.failed) == (
        "exec_command", "make light", "lit", "c1", False,
    )  # fmt: skip
    assert found.unknown == {}


@pytest.mark.parametrize(("text", "expected"), [
    ("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>", []),
    ("<user_instructions>\nbe terse\n</user_instructions>", []),
    ("# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nFix a.py", [("user",
     "Fix a.py")]),
    (f"Go on.\n{OPENING}old{CLOSING}", [("user", "Go on.")]),
    ("<user_shell_command>\n<command>\nls -l\n</command>\n<result>\n0\n</result>\n</user_shell_command>", [("event",
     "! ls -l")]),
    ("What is <environment_context>?", [("user", "What is <environment_context>?")]),
])  # fmt: skip
def test_what_stands_in_the_users_name(text, expected):
    assert [(e.kind, e.text) for e in conversation(meta(), message("user", text)).entries] == expected


def test_the_harness_says_which_blocks_are_the_users():
    blocks = message("user", "injected", "mine", kinds=["hooks.additional_context", "user.text"])
    assert words(conversation(blocks), "user") == ["mine"]


def test_older_files_have_their_words_in_events_only():
    found = conversation(meta(), event("user_message", message="ask"), event("agent_message", message="answer"))
    assert [(e.kind, e.text) for e in found.entries] == [("user", "ask"), ("assistant", "answer")]
    # A role that has messages needs no echo, whichever came first.
    mixed = conversation(
        event("user_message", message="ask"), message("user", "ask"), event("agent_message", message="a")
    )
    assert kinds(mixed) == ["user", "assistant"]


def test_the_first_versions_wrote_bare_items():
    found = conversation(
        {"id": ID, "timestamp": "2025-05-01T10:00:00Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
    )
    assert (found.session_id, words(found, "user"), found.unknown) == (ID, ["hi"], {})


@pytest.mark.parametrize(("output", "text", "failed"), [
    ("plain", "plain", False),
    ([{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "data:…"}], "a\n[image]", False),
    ({"content": "no", "success": False}, "no", True),
    (json.dumps({"output": "boom\n", "metadata": {"exit_code": 2}}), "boom", True),
    ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nboom", "boom", True),
    ('Script completed\nWall time 0.1 seconds\nOutput:\n{"wall_time_seconds":0.1,"exit_code":2,"output":"boom"}',
     '{"wall_time_seconds":0.1,"exit_code":2,"output":"boom"}', True),
    ("Script failed\nWall time 0.1 seconds\nOutput:\nboom", "boom", True),
    ('"exit_code":2', '"exit_code":2', False),
    ("Exit code of the lantern\nOutput:\nstays", "Exit code of the lantern\nOutput:\nstays", False),
    (None, "", False),
])  # fmt: skip
def test_outputs(output, text, failed):
    (back,) = conversation(item("function_call_output", call_id="c", output=output)).entries
    assert (back.text, back.failed) == (text, failed)


def test_calls_of_all_kinds():
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n*** Add File: b.py\n*** End Patch"
    found = conversation(
        item("custom_tool_call", name="apply_patch", input=patch, call_id="1"),
        item("local_shell_call", action={"type": "exec", "command": ["git", "status"]}, call_id="2"),
        item("web_search_call", action={"type": "search", "query": "lanterns"}),
        item("function_call", name="shell", arguments="{not json", call_id="4"),
        item(
            "function_call", name="spawn_agent", arguments='{"agent_type": "explorer", "message": "look"}', call_id="5"
        ),
    )
    assert [(e.kind, e.name, e.text) for e in found.entries] == [
        ("tool", "apply_patch", "a.py, b.py"), ("tool", "local_shell", "git status"),
        ("tool", "web_search", "lanterns"), ("tool", "shell", "{not json"), ("subagent", "explorer", "look"),
    ]  # fmt: skip


@pytest.mark.parametrize(("code", "name", "text"), [
    (r'const r = await tools.exec_command({cmd:"sed -n \"1p\" a.py","workdir":"/x"}); text(r.output);',
     "exec_command", 'sed -n "1p" a.py'),
    ('await Promise.all([tools.exec_command({ "cmd": "ls" }), tools.exec_command({cmd: `make ${x}`})])',
     "exec_command", "ls; make ${x}"),
    (r'const patch = "*** Begin Patch\n*** Update File: a.py\n@@\n"; text(await tools.apply_patch(patch));',
     "apply_patch", "a.py"),
    ("text(await tools.write_stdin({session_id:7}))", "write_stdin", "text(await tools.write_stdin({session_id:7}))"),
    ("text(ALL_TOOLS)", "exec", "text(ALL_TOOLS)"),
])  # fmt: skip
def test_tools_that_a_program_calls(code, name, text):
    (tool,) = conversation(item("custom_tool_call", name="exec", input=code, call_id="1")).entries
    assert (tool.name, tool.text) == (name, text)


def test_the_answer_to_a_request_for_a_summary_is_no_word_to_the_user():
    found = conversation(
        message("user", "go"),
        message("assistant", "Lit so far."),
        line("compacted", {"message": PREAMBLE + "Lit so far."}),
    )
    assert [(e.kind, e.text) for e in found.entries] == [("user", "go"), ("compaction", "Lit so far.")]
    other = conversation(message("assistant", "Something else."), line("compacted", {"message": ""}))
    assert kinds(other) == ["assistant", "compaction"] and other.entries[1].text == ""


def test_a_rollback_drops_turns():
    turns = [message("user", "a"), message("assistant", "1"), message("user", "b"), message("assistant", "2")]
    assert [e.text for e in conversation(*turns, event("thread_rolled_back", num_turns=1)).entries] == ["a", "1"]
    assert conversation(*turns, event("thread_rolled_back", num_turns=9)).entries == ()
    assert len(conversation(*turns, event("thread_rolled_back", num_turns="1")).entries) == 4


def test_threads_of_sub_agents_are_no_sessions():
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": "p1", "depth": 1}}}
    assert conversation(meta(source=spawned)).parent == "p1"
    assert conversation(meta(source={"subagent": "review"})).parent == UNNAMED
    assert conversation(meta(source={"subagent": "review"}, session_id="root")).parent == "root"


def test_a_fork_keeps_its_own_header_and_a_headless_file_the_id_in_its_name():
    assert conversation(meta(), meta(id="other", source={"subagent": "review"})).session_id == ID
    named = read(jsonl(message("user", "x")), file_name=f"/x/rollout-2026-03-28T22-34-06-{ID}.jsonl")
    assert named.session_id == ID


@pytest.mark.parametrize("path", samples("codex"))
def test_real_transcripts(path):
    found = read_sample(read, path)
    assert found.damaged == 0 and not found.torn and found.unknown == {}
    assert found.session_id or not found.entries
    said = []
    for record in map(json.loads, path.read_text("utf-8").splitlines()):
        payload = record["payload"]
        if record["type"] == "response_item" and payload.get("role") in ("user", "assistant"):
            said += [c["text"] for c in payload["content"] if not c["text"].startswith("<environment_context>")]
    summaries = words(found, "compaction")
    told = sorted(text for text in said if text not in summaries)
    assert sorted(words(found, "user") + words(found, "assistant")) == told
