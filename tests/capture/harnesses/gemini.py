"""Gemini CLI, as version 0.61 writes."""

from harness_samples import at, case

PLACE = ".gemini/tmp/lantern/chats/session-2026-03-28T22-34-{:.8}.jsonl"
_TIME = {"timestamp": "2026-03-29T10:00:00.000Z"}


def _prompt(text):
    return {"hook_event_name": "BeforeAgent", "prompt": text, **_TIME}


# What a start gives comes behind the words of the next prompt; it reports no compaction.
STEPS = {
    "start": ("all", [{"hook_event_name": "SessionStart", "source": "startup", **_TIME}, _prompt("Hello")]),
    "prompt": ("lines", [_prompt("{prompt}")]),
    "resume": ("", [{"hook_event_name": "SessionStart", "source": "resume", **_TIME}, _prompt("Hello again")]),
    "compaction": (None, []),
    "end": ("", [{"hook_event_name": "SessionEnd", "reason": "exit", **_TIME}]),
}


def records(session, cwd, turns, got):
    yield {"sessionId": session, "startTime": at(0), "lastUpdated": at(9), "directories": [cwd], "kind": "main"}
    spans = [f"<hook_context>{one.replace('<', '&lt;').replace('>', '&gt;')}</hook_context>" for one in got]
    for number, turn in enumerate(turns):
        message = {"id": f"m{number}", "timestamp": at(number), "type": turn.kind, "content": turn.text}
        if turn.kind == "user":
            yield message | {"content": [{"text": turn.text}, *({"text": span} for span in spans)]}
        elif turn.kind == "assistant":
            yield message | {"type": "gemini"}
        else:
            response = {"id": f"g{number}", "name": turn.text, "response": {"output": turn.back}}
            call = {"id": f"g{number}", "name": turn.text, "args": turn.given, "status": "success"}
            call |= {"result": [{"functionResponse": response}], "displayName": turn.text, "resultDisplay": turn.back}
            yield message | {"type": "gemini", "content": "", "toolCalls": [call]}
            parts = [{"functionResponse": response}]
            yield message | {"id": f"u{number}", "type": "user", "content": parts}


_ID = "e23e507f-0000-4000-8000-000000000001"
_HEADER = {"sessionId": _ID, "projectHash": "00", "startTime": at(0), "kind": "main"}
_CONTEXT = "<session_context>\n- **Workspace Directories:**\n  - /home/ada/lantern\n- **More:**\n</session_context>"
_THANKS = "Got it. Thanks for the additional context!"


def _message(kind, content, key, number=0, **more):
    content = [{"text": content}] if kind == "user" and isinstance(content, str) else content
    return {"id": key, "timestamp": at(number), "type": kind, "content": content, **more}


def _tool(output="lit", **more):
    answer = {"functionResponse": {"id": "c1", "name": "run", "response": {"output": output}}}
    return {"id": "c1", "name": "run", "args": {"command": "make light"}, "result": [answer], **more}


def _asks(**args):
    return {"functionCall": {"id": "c1", "name": "run", "args": args}}


_TURNS = [
    _HEADER, _message("user", "first", "m1", 1), _message("gemini", "one", "m2", 2), _message("user", "again", "m3", 3),
    _message("gemini", "two", "m4", 4, toolCalls=[_tool()]), _message("user", "again", "m5", 5),
    _message("gemini", "three", "m6", 6),
]  # fmt: skip
# A compression gives new ids to what it kept, and answers its summary in the model's name.
_SNAPSHOT = [
    _message("user", _CONTEXT, "m0", 9),
    _message("user", "<state_snapshot>\nGoal: light\n</state_snapshot>", "n1", 9),
    _message("gemini", _THANKS, "n2", 9), _message("gemini", [{"text": "two"}, _asks(command="make light")], "n3", 9),
    _message("user", "again", "n4", 9), _message("gemini", [{"text": "three"}], "n5", 9),
]  # fmt: skip
_COMPRESSED = [*_TURNS, {"$set": {"messages": _SNAPSHOT}}, _message("user", "go on", "m7", 10)]
_RESUMED = [*_COMPRESSED, {"$set": {"messages": [*_SNAPSHOT, _message("user", "go on", "m7", 20)]}}]
_AGAIN = [_message("user", "Goal: dark", "o1", 30), _message("gemini", _THANKS, "o2", 30)]
_TOLD = (
    "user first", "assistant one", "user again", "assistant two", "tool make light", "result lit", "user again",
    "assistant three", "compaction Goal: light",
)  # fmt: skip
_THREE = [_message("user", "a", "m1"), _message("gemini", "1", "m2"), _message("user", "b", "m3")]
_WRAPPED = "<untrusted_context>\nOutput: lit\nProcess Group PGID: 7\n</untrusted_context>"
CASES = {
    "a session": case(
        [
            _HEADER, {"$set": {"messages": [_message("user", _CONTEXT, "m0")]}},
            _message("user", "<hook_context>injected</hook_context>\n\nLight the lantern.", "m1", 1),
            _message("gemini", "On it.", "m2", 2), _message("gemini", "On it.", "m2", 2, toolCalls=[_tool()]),
            _message("user", [{"functionResponse": {"id": "c1", "response": {"output": "lit"}}}], "m3", 5),
            _message("gemini", [{"text": "thinking", "thought": True}, {"text": "It is lit."}], "m4", 6),
            {"$set": {"lastUpdated": at(9)}},
        ],
        "user Light the lantern.", "assistant On it.", "tool make light", "result lit", "assistant It is lit.",
        session_id=_ID, project="/home/ada/lantern", parent=None,
    ),
    "a snapshot adds and updates, but what it lacks stays": case(
        [
            _HEADER, _message("user", "first", "m1", 1), _message("gemini", "", "m2", 2, toolCalls=[_tool()]),
            {"$set": {"messages": [_message("gemini", [_asks()], "m2", 30), _message("user", "new", "m9", 30)]}},
            _message("gemini", "last", "m3", 31),
        ],
        "user first", "tool make light", "result lit", "user new", "assistant last", at=[1, 2, 2, 30, 31],
    ),
    "a rewind takes away": case([*_THREE, {"$rewindTo": "m2"}, _message("user", "c", "m4")], "user a", "user c"),
    "a rewind to what is gone takes nothing": case([*_THREE, {"$rewindTo": "z"}], "user a", "assistant 1", "user b"),
    "a compression is one boundary and repeats nothing": case(_COMPRESSED, *_TOLD, "user go on"),
    "a resume repeats its snapshot": case(_RESUMED, *_TOLD, "user go on"),
    "a second one has a summary of its own": case(
        [*_RESUMED, {"$set": {"messages": [*_AGAIN, _message("user", "go on", "o3", 30)]}}, {"$rewindTo": "o3"}], *_TOLD
    ),
    "a file begins with a compression": case(
        [{"$set": {"messages": _SNAPSHOT}}],
        "compaction Goal: light", "assistant two", "tool make light", "user again", "assistant three",
    ),
    "what was typed counts, not the files that were named": case(
        [_message("user", "see @a.py\n--- Content …", "m1", displayContent=[{"text": "see @a.py"}]),
         _message("user", [{"text": "look"}, {"inlineData": {"data": "aGk="}}], "m2")],
        "user see @a.py", "user look\n\n[image]",
    ),
    "a wrapped result": case(
        [_message("gemini", "", "m", toolCalls=[_tool(_WRAPPED)])], "tool make light", "result lit"
    ),
    "a result that was shown": case(
        [_message("gemini", "", "m", toolCalls=[_tool(result=None, resultDisplay="shown", status="error")])],
        "tool make light", "result shown", failed=[False, True],
    ),
    "a result apart": case(
        [_message("gemini", [_asks(command="x")], "m1"),
         _message("user", [{"functionResponse": {"id": "c1", "response": {"error": "boom"}}}], "m2")],
        "tool x", "result boom", failed=[False, True],
    ),
    "notices and unknown records": case(
        [_message("error", "quota", "m1"), _message("hologram", "x", "m2"), {"$merge": {}}],
        "event error: quota",
    ),
    "a sub-agent's file": case(
        [{**_HEADER, "kind": "subagent"}, _message("user", "x", "m1")], "user x", parent="unnamed"
    ),
}  # fmt: skip
