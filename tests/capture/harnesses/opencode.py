"""OpenCode, as version 1.18 writes: one database."""

import json

import apsw
from harness_samples import START_US, case

from signet_sync.capture.harnesses.opencode import transcript as opencode
from signet_sync.capture.harnesses.opencode.transcript import MessageRow

PLACE = ".local/share/opencode/opencode.db"
# Into the system prompt of each request, which a compaction does not touch.
STEPS = {
    "start": ("all", [{"hook_event_name": "SessionStart", "source": "startup"}]),
    "prompt": ("lines", [{"hook_event_name": "UserPromptSubmit", "prompt": '"{prompt}"'}]),
    "resume": ("all", [{"hook_event_name": "SessionStart", "source": "startup"}]),
    "compaction": ("", [{"hook_event_name": "PostCompact"}]),
    "end": ("", [{"hook_event_name": "SessionEnd"}]),
}


def write(path, session, cwd, turns, got):
    """What a session got is in no row."""
    path.unlink(missing_ok=True)
    start = START_US // 1_000
    with apsw.Connection(str(path)) as rows:
        rows.execute(
            "create table session (id, parent_id, directory, title, revert, time_created, time_updated);"
            "create table message (id, session_id, time_created, time_updated, data);"
            "create table part (id, message_id, session_id, time_created, time_updated, data);"
        )
        rows.execute("insert into session values (?, null, ?, 'x', null, ?, ?)", (session, cwd, start, start))
        for number, turn in enumerate(turns):
            when = start + number * 1_000
            part = {"type": "text", "text": turn.text}
            if turn.kind == "call":
                state = {"status": "completed", "input": turn.given, "output": turn.back}
                state |= {"metadata": {"structuredContent": turn.back}, "time": {"start": when}}
                part = {"type": "tool", "tool": turn.text, "callID": f"o{number}", "state": state}
            role = "user" if turn.kind == "user" else "assistant"
            data = json.dumps({"role": role, "time": {"created": when}})
            rows.execute("insert into message values (?, ?, ?, ?, ?)", (f"m{number}", session, when, when, data))
            values = (f"p{number}", f"m{number}", session, when, when, json.dumps(part))
            rows.execute("insert into part values (?, ?, ?, ?, ?, ?)", values)


def parse(rows, **session):
    held = {
        "id": "ses_1",
        "parent_id": None,
        "directory": "/home/u/lantern",
        "title": "Lamp oil",
        "time_created": 1_000,
    }
    return opencode.read(held | session, rows)


def _message(role, at, *parts, **data):
    document = {"role": role, "time": {"created": at}} | data
    rows = [(f"prt_{at}_{n}", part if isinstance(part, str) else json.dumps(part)) for n, part in enumerate(parts)]
    return MessageRow(f"msg_{at}", json.dumps(document), rows)


def _text(words, **more):
    return {"type": "text", "text": words} | more


def _tool(status="completed", tool="bash", **state):
    return {"type": "tool", "tool": tool, "callID": "c1", "state": {"status": status} | state}


_ASKED = {"description": "look around", "prompt": "…", "subagent_type": "explore"}
_THREE = [
    _message("user", 1, _text("one")), _message("assistant", 2, _text("a"), _text("b")), _message("user", 3, _text("x"))
]  # fmt: skip
_ALL = ("user one", "assistant a", "assistant b", "user x")
CASES = {
    "a session with a tool": case(
        [
            _message("user", 2_000, _text("run the"), _text("tests"), summary={"diffs": []}),
            _message(
                "assistant", 3_000, {"type": "step-start"}, {"type": "reasoning", "text": "secret thoughts"},
                _text("Running.", time={"start": 3_100}),
                _tool(input={"command": "npm test"}, output="ok", time={"start": 3_200, "end": 3_900}),
                {"type": "step-finish"},
            ),
            _message("assistant", 4_000, _text("Done.")),
        ],
        "user run the\n\ntests", "assistant Running.", "tool npm test", "result ok", "assistant Done.",
        at_us=[2_000_000, 3_100_000, 3_200_000, 3_900_000, 4_000_000], name=["", "", "bash", "bash", ""],
        session_id="ses_1", project="/home/u/lantern", parent=None,
    ),
    "what nobody said is dropped": case(
        [
            _message("user", 1, _text("the file says …", synthetic=True), _text("ignored", ignored=True), _text("  ")),
            _message("user", 3, {"type": "file", "filename": "lamp.png", "url": "data:image/png;base64,AAAA"}),
        ],
        "event attached lamp.png",
    ),
    "failed, running and titled tools": case(
        [
            _message("assistant", 1, _tool("error", "read", input={"filePath": "/x/a.py"}, error="no such file")),
            _message("assistant", 2, _tool("running", input={"command": "sleep 9"})),
            _message("assistant", 3, _tool(input={}, title="todo list", output="")),
            _message("assistant", 4, _tool(input={"command": "vp"}, output="not found", metadata={"exit": 127})),
            _message("assistant", 5, _tool(tool="apply_patch", input={"patchText": "*** Add File: /x/b.py\n+1"})),
        ],
        "tool /x/a.py", "result no such file", "tool sleep 9", "tool todo list", "result ", "tool vp",
        "result not found", "tool /x/b.py", "result ",
        failed=[True, True, *[False] * 3, True, True, False, False],
    ),
    "sub-agents are linked": case(
        [
            _message("assistant", 1, _tool(tool="task", input=_ASKED, output="found it")),
            _message("user", 2, {"type": "subtask", "agent": "review", "description": "judge it"}),
        ],
        "subagent look around", "result found it", "subagent judge it",
        name=["explore", "explore", "review"], session={"parent_id": "ses_0"}, parent="ses_0",
    ),
    "a compaction is one boundary": case(
        [
            _message("user", 1, _text("go")), _message("user", 2, {"type": "compaction", "auto": True}),
            _message("assistant", 3, _text("Goal: light"), summary=True, agent="compaction"),
            _message("user", 4, _text("Continue", synthetic=True)),
            _message("user", 5, {"type": "compaction", "auto": False}),
        ],
        "user go", "compaction Goal: light", "compaction ", at_us=[1_000, 3_000, 5_000],
    ),
    "an error is an event": case(
        [_message("assistant", 1, error={"name": "APIError", "data": {"message": "overloaded"}})],
        "event APIError: overloaded",
    ),
    "what the user undid is left out": case(_THREE, "user one", session={"revert": '{"messageID": "msg_2"}'}),
    "and a part": case(
        _THREE, *_ALL[:2], session={"revert": '{"messageID": "msg_2", "partID": "prt_2_1"}'}
    ),
    **{
        f"nothing is undone by {revert}": case(_THREE, *_ALL, session={"revert": revert})
        for revert in ("not json", '{"messageID": "elsewhere"}', 7, "[]")
    },
    "damage and unknown types are left out": case(
        [
            MessageRow("m", "{torn", []), _message("user", 1, "[]", "{", {"type": "hologram"}, _text("still here")),
            _message("narrator", 2, _text("x")),
        ],
        "user still here", remark="",
    ),
    "no rows": case([], remark="the session holds no messages"),
}  # fmt: skip
