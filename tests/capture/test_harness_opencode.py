"""OpenCode's rows: which parts count as said, compactions, undone messages, and that no input raises."""

from __future__ import annotations

import json

from signet_sync.capture.harnesses.opencode import transcript as opencode
from signet_sync.capture.harnesses.opencode.transcript import MessageRow
from signet_sync.formats.managed_block import CLOSING, OPENING

SESSION = {
    "id": "ses_1", "parent_id": None, "directory": "/home/u/lantern", "title": "Lamp oil", "time_created": 1_000,
    "time_updated": 9_000, "revert": None,
}  # fmt: skip


def message(role: str, at: int, *parts, **data) -> MessageRow:
    document = {"role": role, "time": {"created": at}} | data
    rows = [(f"prt_{at}_{n}", part if isinstance(part, str) else json.dumps(part)) for n, part in enumerate(parts)]
    return MessageRow(f"msg_{at}", json.dumps(document), rows)


def text(words: str, **more) -> dict:
    return {"type": "text", "text": words} | more


def tool(status: str = "completed", **state) -> dict:
    return {"type": "tool", "tool": state.pop("tool", "bash"), "callID": "c1", "state": {"status": status} | state}


def read(*messages, **session):
    return opencode.read(SESSION | session, messages)


def told(conversation) -> list[tuple[str, str]]:
    return [(entry.kind, entry.text) for entry in conversation.entries]


def test_a_session_with_a_tool():
    conversation = read(
        message("user", 2_000, text("run the"), text("tests"), summary={"diffs": []}),
        message(
            "assistant", 3_000, {"type": "step-start"}, {"type": "reasoning", "text": "secret thoughts"},
            text("Running.", time={"start": 3_100}),
            tool(input={"command": "npm test"}, output="ok", time={"start": 3_200, "end": 3_900}),
            {"type": "step-finish"},
        ),
        message("assistant", 4_000, text("Done.")),
    )  # fmt: skip
    assert told(conversation) == [
        ("user", "run the\n\ntests"), ("assistant", "Running."), ("tool", "npm test"), ("result", "ok"),
        ("assistant", "Done."),
    ]  # fmt: skip
    assert [entry.at for entry in conversation.entries] == [2_000_000, 3_100_000, 3_200_000, 3_900_000, 4_000_000]
    assert (conversation.entries[2].name, conversation.entries[2].call) == ("bash", "c1")
    assert (conversation.session_id, conversation.project, conversation.title) == (
        "ses_1", "/home/u/lantern", "Lamp oil",
    )  # fmt: skip
    assert (conversation.entries[0].at, conversation.entries[-1].at) == (2_000_000, 4_000_000)
    assert not conversation.unknown and not conversation.damaged and not conversation.parent


def test_what_nobody_said_is_dropped():
    conversation = read(
        message("user", 1, text("the file says …", synthetic=True), text("ignored", ignored=True), text("  ")),
        message("user", 2, text(f"{OPENING}\n# Working Memory\n{CLOSING}light it")),
        message("user", 3, {"type": "file", "filename": "lamp.png", "url": "data:image/png;base64,AAAA"}),
    )
    assert told(conversation) == [("user", "light it"), ("event", "attached lamp.png")]


def test_failed_running_and_titled_tools():
    conversation = read(
        message("assistant", 1, tool("error", input={"filePath": "/x/a.py"}, error="no such file", tool="read")),
        message("assistant", 2, tool("running", input={"command": "sleep 9"})),
        message("assistant", 3, tool("completed", input={}, title="todo list", output="")),
        message("assistant", 4, tool(input={"command": "vp"}, output="not found", metadata={"exit": 127})),
        message("assistant", 5, tool(tool="apply_patch", input={"patchText": "*** Add File: /x/b.py\n+1"})),
    )
    assert told(conversation) == [
        ("tool", "/x/a.py"), ("result", "no such file"), ("tool", "sleep 9"), ("tool", "todo list"), ("result", ""),
        ("tool", "vp"), ("result", "not found"), ("tool", "/x/b.py"), ("result", ""),
    ]  # fmt: skip
    assert [one.failed for one in conversation.entries] == [True, True, *[False] * 3, True, True, False, False]


def test_sub_agents_are_linked():
    asked = {"description": "look around", "prompt": "…", "subagent_type": "explore"}
    conversation = read(
        message("assistant", 1, tool(tool="task", input=asked, output="found it")),
        message("user", 2, {"type": "subtask", "agent": "review", "description": "judge it"}),
        parent_id="ses_0",
    )
    assert [(e.kind, e.name, e.text) for e in conversation.entries] == [
        ("subagent", "explore", "look around"), ("result", "explore", "found it"), ("subagent", "review", "judge it"),
    ]  # fmt: skip
    assert conversation.parent == "ses_0"


def test_a_compaction_is_one_boundary():
    conversation = read(
        message("user", 1, text("go")),
        message("user", 2, {"type": "compaction", "auto": True}),
        message("assistant", 3, text("Goal: light"), summary=True, agent="compaction"),
        message("user", 4, text("Continue", synthetic=True)),
        message("user", 5, {"type": "compaction", "auto": False}),
    )
    assert told(conversation) == [("user", "go"), ("compaction", "Goal: light"), ("compaction", "")]
    assert [entry.at for entry in conversation.entries] == [1_000, 3_000, 5_000]


def test_an_error_is_an_event():
    error = {"name": "APIError", "data": {"message": "overloaded"}}
    assert told(read(message("assistant", 1, error=error))) == [("event", "APIError: overloaded")]


def test_what_the_user_undid_is_left_out():
    messages = [
        message("user", 1, text("one")), message("assistant", 2, text("a"), text("b")), message("user", 3, text("x")),
    ]  # fmt: skip
    assert [t for _, t in told(read(*messages, revert='{"messageID": "msg_2"}'))] == ["one"]
    assert [t for _, t in told(read(*messages, revert='{"messageID": "msg_2", "partID": "prt_2_1"}'))] == ["one", "a"]
    for revert in ("not json", '{"messageID": "elsewhere"}', 7, "[]"):
        assert len(read(*messages, revert=revert).entries) == 4


def test_damage_and_unknown_types_are_counted():
    conversation = read(
        MessageRow("m", "{torn", []),
        message("user", 1, "[]", "{", {"type": "hologram"}, text("still here")),
        message("narrator", 2, text("x")),
    )
    assert (conversation.damaged, conversation.unknown) == (3, {"hologram": 1, "narrator": 1})
    assert told(conversation) == [("user", "still here")]
    assert read().remark and read(MessageRow("m", "{torn", [])).remark and not conversation.remark
