"""OpenClaw's older files; its hook runs in the gateway."""

from harness_samples import at, case

PLACE = ".openclaw/agents/main/sessions/{}.jsonl"
_KEY = {"session_key": "agent:main:main"}
# Into the files that each run begins with; no hook of ours is called at a prompt.
STEPS = {
    "start": ("all", [{"hook_event_name": "SessionStart", **_KEY}]),
    "prompt": (None, []),
    "resume": ("all", [{"hook_event_name": "SessionStart", **_KEY}]),
    "compaction": ("", [{"hook_event_name": "PostCompact", **_KEY}]),
    "end": ("", [{"hook_event_name": "SessionEnd", **_KEY}]),
}


def records(session, cwd, turns, got):
    yield {"type": "session", "version": 3, "id": session, "timestamp": at(0), "cwd": cwd}
    for number, turn in enumerate(turns):
        message = {"role": turn.kind, "content": [{"type": "text", "text": turn.text}]}
        if turn.kind == "user":
            message["content"].insert(0, {"type": "text", "text": "\n".join(got)})
        if turn.kind != "call":
            yield _record(f"m{number}", number, message)
            continue
        use = {"type": "toolCall", "id": f"w{number}", "name": turn.text, "arguments": turn.given}
        yield _record(f"m{number}", number, {"role": "assistant", "content": [use]})
        result = {"role": "toolResult", "toolCallId": use["id"], "toolName": turn.text}
        result |= {"content": [{"type": "text", "text": turn.back}], "details": {"structuredContent": turn.back}}
        yield _record(f"r{number}", number, result)


def _record(identity, number, message):
    return {"type": "message", "id": identity, "timestamp": at(number), "message": message}


_HEADER = {"type": "session", "version": 3, "id": "0b7e", "timestamp": at(0), "cwd": "/home/u/lantern"}


def _said(role, content, *, name="", parent=None, **more):
    place = {"id": name, "parentId": parent} if name else {}
    return {"type": "message", "timestamp": at(1), "message": {"role": role, "content": content, **more}} | place


def _text(words):
    return {"type": "text", "text": words}


def _tree(*edges):
    return [_HEADER, *(_said("user", words, name=name, parent=parent) for name, parent, words in edges)]


_CUT = {"type": "compaction", "timestamp": at(3), "id": "k", "parentId": None, "summary": "so far"}
_MIXED = [*_tree(("a", None, "one"), ("b", "a", "two")), _said("user", "appended")]
_ALL = ("user one", "user two", "user three")
_ID = "11111111-2222-3333-4444-555555555555"
CASES = {
    "words, a call and an image": case(
        [
            _HEADER,
            _said("user", [_text("run the tests"), {"type": "image", "data": "AAAA", "mimeType": "image/png"}]),
            _said("assistant", [{"type": "thinking", "thinking": "secret thoughts"}, _text("Running them."),
             {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "npm  test\n"}}]),
            _said("toolResult", [_text("1 failed")], toolCallId="t1", toolName="bash", isError=True),
            _said("assistant", "One fails."),
        ],
        "user run the tests\n\n[image]", "assistant Running them.", "tool npm test", "result 1 failed",
        "assistant One fails.",
        name=["", "", "bash", "bash", ""], failed=[False, False, False, True, False], turns=3,
        session_id="0b7e", project="/home/u/lantern",
    ),
    "the other records": case(
        [
            _HEADER, {"type": "model_change", "modelId": "m"},
            {"type": "custom", "customType": "x", "data": {"text": "state"}},
            {"type": "custom_message", "customType": "x", "content": "injected", "display": True},
            {"type": "branch_summary", "fromId": "a", "summary": "tried\nwhale oil"},
            {"type": "compaction", "summary": "## Goal\nlight", "firstKeptEntryId": "a"}, {"type": "reset"},
            _said("bashExecution", None, command="ls", output="a\nb", exitCode=1),
            _said("assistant", [], stopReason="aborted"),
            _said("assistant", [], stopReason="error", errorMessage="overloaded"),
            {"type": "hologram"}, _said("narrator", "x"),
        ],
        "event came back from another branch: tried whale oil", "compaction ## Goal\nlight", "event session reset",
        "tool ls", "result a\nb", "event interrupted", "event error: overloaded",
    ),
    "a rewind leaves a dead branch": case(
        _tree(("a", None, "one"), ("b", "a", "wrong"), ("c", "b", "turn"), ("d", "a", "right")),
        "user one", "user right",
    ),
    "a new start leaves the old one": case(_tree(("a", None, "wrong"), ("b", None, "new")), "user new"),
    "a parent is lost": case(_tree(("a", None, "one"), ("b", "gone", "two"), ("c", "b", "three")), *_ALL),
    "a circle": case(_tree(("a", "c", "one"), ("b", "a", "two"), ("c", "b", "three")), *_ALL),
    "an id twice": case(_tree(("a", None, "one"), ("a", None, "two"), ("c", "a", "three")), *_ALL),
    "an odd parent": case(_tree(("a", None, "one"), ("b", 7, "two"), ("c", "b", "three")), *_ALL),
    "records without ids follow each other": case([_said("user", "one"), _said("user", "two")], *_ALL[:2]),
    "the last record went on from its parent": case([*_MIXED, *_tree(("c", "b", "three"))[1:]], *_ALL),
    "a record of a program that knows no tree": case(_MIXED, *_ALL[:2], "user appended"),
    "a compaction without a parent goes on": case(
        [*_tree(("a", None, "one")), _CUT, *_tree(("b", "k", "two"))[1:]], "user one", "compaction so far", "user two"
    ),
    "the name of the file says which session": case([], file_name=f"/x/{_ID}-topic-7.jsonl", session_id=_ID),
    "the header says it before the name": case([_HEADER], file_name=f"{_ID}.jsonl", session_id="0b7e"),
    "a name that says nothing": case([], file_name="notes.jsonl", session_id=""),
    "a job of its clock": case([_said("user", "[cron:1 nightly] Go")], "user [cron:1 nightly] Go", headless=True),
    "a person's prompt": case([_said("user", "Go")], "user Go", headless=False),
    "a deep document": case([b"[" * 200_000, b'{"a":' * 100_000]),
}  # fmt: skip
