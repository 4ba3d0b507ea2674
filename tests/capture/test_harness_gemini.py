"""Gemini CLI's chats: patches folded into messages that only a rewind takes away."""

import json

import pytest
from transcripts import jsonl, kinds, read_sample, samples, words

from signet_sync.capture.harnesses.gemini.transcript import read
from signet_sync.capture.harnesses.markdown import render
from signet_sync.capture.harnesses.reader import UNNAMED
from signet_sync.formats.managed_block import CLOSING, OPENING
from signet_sync.formats.timestamps import parse_instant

ID = "e23e507f-0000-4000-8000-000000000001"
HEADER = {"sessionId": ID, "projectHash": "00", "startTime": "2026-03-28T22:34:00.000Z", "kind": "main"}
CONTEXT = "<session_context>\n- **Workspace Directories:**\n  - /home/ada/lantern\n- **More:**\n</session_context>"


def message(kind, content, key, second=0, **more):
    return {"id": key, "timestamp": f"2026-03-28T22:34:{second:02d}.000Z", "type": kind, "content": content, **more}


def user(text, key, second=0, **more):
    return message("user", [{"text": text}], key, second, **more)


def tool(call="c1", output="lit", **more):
    answer = {"functionResponse": {"id": call, "name": "run", "response": {"output": output}}}
    return {
        "id": call, "name": "run", "args": {"command": "make light"}, "result": [answer], "status": "success", **more,
    }  # fmt: skip


def conversation(*records):
    return read(jsonl(*records))


def test_a_conversation():
    found = conversation(
        HEADER,
        {"$set": {"messages": [user(CONTEXT, "m0")]}},
        user("<hook_context>injected</hook_context>\n\nLight the lantern.", "m1", 1),
        message("gemini", "On it.", "m2", 2),
        message("gemini", "On it.", "m2", 2, toolCalls=[tool(timestamp="2026-03-28T22:34:04.000Z")]),
        message("user", [{"functionResponse": {"id": "c1", "response": {"output": "lit"}}}], "m3", 5),
        message("gemini", [{"text": "thinking", "thought": True}, {"text": "It is lit."}], "m4", 6),
        {"$set": {"summary": "A lantern", "lastUpdated": "2026-03-28T22:35:00.000Z"}},
    )
    assert [(e.kind, e.text) for e in found.entries] == [
        ("user", "Light the lantern."), ("assistant", "On it."), ("tool", "make light"), ("result", "lit"),
        ("assistant", "It is lit."),
    ]  # fmt: skip
    assert (found.session_id, found.project, found.title, found.parent) == (ID, "/home/ada/lantern", "A lantern", None)
    assert found.entries[-1].at == parse_instant("2026-03-28T22:34:06Z") and found.unknown == {}


def test_a_snapshot_adds_and_updates_but_what_it_lacks_stays():
    before = [user("first", "m1", 1), message("gemini", "", "m2", 2, toolCalls=[tool()])]
    snapshot = [
        message("gemini", [{"functionCall": {"id": "c1", "name": "run", "args": {}}}], "m2", 30),
        user("new", "m9", 30),
    ]
    found = conversation(HEADER, *before, {"$set": {"messages": snapshot}}, message("gemini", "last", "m3", 31))
    assert kinds(found) == ["user", "tool", "result", "user", "assistant"]
    assert found.entries[1].text == "make light"
    assert found.entries[1].at == parse_instant("2026-03-28T22:34:02Z")


def test_only_a_rewind_takes_away():
    records = [user("a", "m1"), message("gemini", "1", "m2"), user("b", "m3")]
    assert [e.text for e in conversation(*records, {"$rewindTo": "m2"}, user("c", "m4")).entries] == ["a", "c"]
    assert len(conversation(*records, {"$rewindTo": "zz"}).entries) == 3


def test_a_compression_is_one_boundary_and_repeats_nothing():
    """It gives new ids to what it kept, and answers its summary in the model's name."""
    turns = [
        user("first", "m1", 1), message("gemini", "one", "m2", 2), user("again", "m3", 3),
        message("gemini", "two", "m4", 4, toolCalls=[tool()]), user("again", "m5", 5),
        message("gemini", "three", "m6", 6),
    ]  # fmt: skip
    call = {"functionCall": {"id": "c1", "name": "run", "args": {"command": "make light"}}}
    snapshot = [
        user(CONTEXT, "m0", 9), user("<state_snapshot>\nGoal: light\n</state_snapshot>", "n1", 9),
        message("gemini", "Got it. Thanks for the additional context!", "n2", 9),
        message("gemini", [{"text": "two"}, call], "n3", 9), user("again", "n4", 9),
        message("gemini", [{"text": "three"}], "n5", 9),
    ]  # fmt: skip
    records = [HEADER, *turns, {"$set": {"messages": snapshot}}, user("go on", "m7", 10)]
    told = [(entry.kind, entry.text) for entry in conversation(*records).entries]
    assert told == [
        ("user", "first"), ("assistant", "one"), ("user", "again"), ("assistant", "two"), ("tool", "make light"),
        ("result", "lit"), ("user", "again"), ("assistant", "three"), ("compaction", "Goal: light"), ("user", "go on"),
    ]  # fmt: skip
    # A resume repeats the snapshot under its ids; a second compression has a summary of its own.
    resumed = [*records, {"$set": {"messages": [*snapshot, user("go on", "m7", 20)]}}]
    assert [(entry.kind, entry.text) for entry in conversation(*resumed).entries] == told
    second = [user("Goal: dark", "o1", 30), message("gemini", "Got it. Thanks for the additional context!", "o2", 30)]
    more = conversation(*resumed, {"$set": {"messages": [*second, user("go on", "o3", 30)]}}, {"$rewindTo": "o3"})
    assert [(entry.kind, entry.text) for entry in more.entries] == told[:-1]
    alone = conversation({"$set": {"messages": snapshot}})
    assert kinds(alone) == ["compaction", "assistant", "tool", "user", "assistant"], "the file begins there"


def test_what_was_typed_counts_not_the_files_that_were_named():
    typed = user("see @a.py\n--- Content from referenced files ---\n…", "m1", displayContent=[{"text": "see @a.py"}])
    assert words(conversation(typed), "user") == ["see @a.py"]
    image = message("user", [{"text": "look"}, {"inlineData": {"data": "aGk="}}], "m2")
    assert words(conversation(image), "user") == ["look\n\n[image]"]
    assert conversation(user(f"{OPENING}old{CLOSING}", "m1")).entries == ()


def test_results():
    wrapped = "<untrusted_context>\nOutput: lit\nProcess Group PGID: 7\n</untrusted_context>"
    assert words(conversation(message("gemini", "", "m", toolCalls=[tool(output=wrapped)])), "result") == ["lit"]
    shown = tool(result=None, resultDisplay="shown", status="error")
    (_, back) = conversation(message("gemini", "", "m", toolCalls=[shown])).entries
    assert (back.text, back.failed) == ("shown", True)
    apart = conversation(
        message("gemini", [{"functionCall": {"id": "c1", "name": "run", "args": {"command": "x"}}}], "m1"),
        message("user", [{"functionResponse": {"id": "c1", "response": {"error": "boom"}}}], "m2"),
    )
    assert [(e.kind, e.text, e.failed) for e in apart.entries] == [("tool", "x", False), ("result", "boom", True)]


def test_notices_are_events_and_unknown_types_are_counted():
    found = conversation(message("error", "quota", "m1"), message("hologram", "x", "m2"), {"$merge": {}})
    assert [(e.kind, e.text) for e in found.entries] == [("event", "error: quota")]
    assert found.unknown == {"hologram": 1, "$merge": 1}


def test_sub_agents_are_no_sessions():
    assert conversation({**HEADER, "kind": "subagent"}, user("x", "m1")).parent == UNNAMED


@pytest.mark.parametrize("indent", [None, 2])
def test_older_versions_wrote_one_document(indent):
    document = {**HEADER, "messages": [user("hi", "m1"), message("gemini", "hello", "m2")]}
    found = read(json.dumps(document, indent=indent).encode().splitlines(keepends=True))
    assert (found.session_id, kinds(found), found.damaged) == (ID, ["user", "assistant"], 0)


@pytest.mark.parametrize("path", samples("gemini"))
def test_real_transcripts(path):
    found = read_sample(read, path)
    assert found.damaged == 0 and not found.torn and found.unknown == {}
    assert found.session_id and found.project and len(words(found, "user")) == 2
    assert len(words(found, "assistant")) == 2 and kinds(found).count("tool") == kinds(found).count("result") == 1
    assert "hook_context" not in render(found.entries)
