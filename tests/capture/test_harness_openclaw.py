"""OpenClaw's older transcripts: what counts as said, the branch that is kept, damage, and that no input raises."""

from __future__ import annotations

import json

import pytest

from signet_sync.capture.harnesses.openclaw import transcript as openclaw
from signet_sync.formats.timestamps import parse_instant

HEADER = {"type": "session", "version": 3, "id": "0b7e", "timestamp": "2026-03-28T22:00:00Z", "cwd": "/home/u/lantern"}


def at(minute: int) -> str:
    return f"2026-03-28T22:{minute:02d}:00.000Z"


def said(role: str, content, minute: int, **more) -> dict:
    message = {"role": role, "content": content} | {k: more.pop(k) for k in list(more) if k not in ("id", "parentId")}
    return {"type": "message", "timestamp": at(minute), "message": message} | more


def read(*records, header=HEADER, **options):
    lines = [json.dumps(r).encode() + b"\n" if isinstance(r, dict) else r for r in (header, *records) if r is not None]
    return openclaw.read(iter(lines), **options)


def told(conversation) -> list[tuple[str, str]]:
    return [(entry.kind, entry.text) for entry in conversation.entries]


def text(value: str) -> dict:
    return {"type": "text", "text": value}


def test_a_session_with_a_tool():
    conversation = read(
        said("user", [text("run the tests"), {"type": "image", "data": "AAAA", "mimeType": "image/png"}], 1),
        said("assistant", [{"type": "thinking", "thinking": "secret thoughts"}, text("Running them."),
         {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "npm  test\n"}}], 2),
        said("toolResult", [text("1 failed")], 3, toolCallId="t1", toolName="bash", isError=True),
        said("assistant", "One fails.", 4),
    )  # fmt: skip
    assert told(conversation) == [
        ("user", "run the tests\n\n[image]"), ("assistant", "Running them."), ("tool", "npm test"),
        ("result", "1 failed"),
        ("assistant", "One fails."),
    ]  # fmt: skip
    tool, result = conversation.entries[2:4]
    assert (tool.name, tool.call, result.name, result.call, result.failed) == ("bash", "t1", "bash", "t1", True)
    assert (conversation.harness, conversation.session_id, conversation.project) == (
        "openclaw", "0b7e", "/home/u/lantern",
    )  # fmt: skip
    assert (conversation.entries[0].at, conversation.entries[-1].at) == (parse_instant(at(1)), parse_instant(at(4)))
    assert conversation.turns == 3 and not conversation.damaged and not conversation.unknown


def test_the_other_records():
    conversation = read(
        {"type": "model_change", "timestamp": at(1), "modelId": "m"},
        {"type": "session_info", "timestamp": at(1), "name": "Lamp oil"},
        {"type": "custom", "timestamp": at(1), "customType": "x", "data": {"text": "state"}},
        {"type": "custom_message", "timestamp": at(1), "customType": "x", "content": "injected", "display": True},
        {"type": "branch_summary", "timestamp": at(2), "fromId": "a", "summary": "tried\nwhale oil"},
        {"type": "compaction", "timestamp": at(3), "summary": "## Goal\nlight", "firstKeptEntryId": "a"},
        {"type": "reset", "timestamp": at(4)},
        said("bashExecution", None, 5, command="ls", output="a\nb", exitCode=1),
        said("assistant", [], 6, stopReason="aborted"),
        said("assistant", [], 7, stopReason="error", errorMessage="overloaded"),
        {"type": "hologram", "timestamp": at(8)},
        said("narrator", "x", 9),
    )
    assert told(conversation) == [
        ("event", "came back from another branch: tried whale oil"),
        ("compaction", "## Goal\nlight"),
        ("event", "session reset"), ("tool", "ls"), ("result", "a\nb"), ("event", "interrupted"),
        ("event", "error: overloaded"),
    ]  # fmt: skip
    assert conversation.title == "Lamp oil"
    assert conversation.unknown == {"hologram": 1, "narrator": 1}


def tree(*edges: tuple[str, str | None, str]) -> list[dict]:
    return [said("user", words, n, id=name, parentId=parent) for n, (name, parent, words) in enumerate(edges, 1)]


def words(*records, **options) -> list[str]:
    return [entry.text for entry in read(*records, **options).entries]


def test_a_rewind_leaves_a_dead_branch():
    assert words(*tree(("a", None, "one"), ("b", "a", "wrong"), ("c", "b", "turn"), ("d", "a", "right"))) == [
        "one",
        "right",
    ]
    assert words(*tree(("a", None, "wrong start"), ("b", None, "new start"))) == ["new start"]


def test_a_broken_tree_loses_nothing():
    lost = tree(("a", None, "one"), ("b", "gone", "two"), ("c", "b", "three"))
    circle = tree(("a", "c", "one"), ("b", "a", "two"), ("c", "b", "three"))
    twice = tree(("a", None, "one"), ("a", None, "two"), ("c", "a", "three"))
    odd = tree(("a", None, "one"), ("b", 7, "two"), ("c", "b", "three"))
    for records in (lost, circle, twice, odd):
        assert words(*records) == ["one", "two", "three"]


def test_records_without_ids_follow_each_other():
    assert words(said("user", "one", 1), said("user", "two", 2), header=None) == ["one", "two"]
    mixed = [*tree(("a", None, "one"), ("b", "a", "two")), said("user", "appended", 3), *tree(("c", "b", "three"))]
    assert words(*mixed) == ["one", "two", "three"]  # the last record went on from `b`
    assert words(*mixed[:3]) == ["one", "two", "appended"]


def test_a_reset_or_compaction_without_a_parent_goes_on():
    cut = {"type": "compaction", "timestamp": at(3), "id": "k", "parentId": None, "summary": "so far"}
    assert words(*tree(("a", None, "one")), cut, *tree(("b", "k", "two"))) == ["one", "so far", "two"]


def test_the_name_of_the_file_says_which_session_where_the_header_does_not():
    name = "11111111-2222-3333-4444-555555555555"
    assert openclaw.read(iter([]), file_name=f"/x/{name}-topic-7.jsonl").session_id == name
    assert read(file_name=f"{name}.jsonl").session_id == "0b7e"
    assert openclaw.read(iter([]), file_name="notes.jsonl").session_id == ""


@pytest.mark.slow
def test_a_deep_document_and_a_long_chain_are_read_soon():
    assert openclaw.read(iter([b"[" * 200_000, b'{"a":' * 100_000])).entries == ()
    chain = tree(*((str(n), str(n - 1) if n else None, "word") for n in range(1, 50)))
    records = [r | {"id": str(n), "parentId": str(n - 1) if n else None} for n, r in enumerate(chain * 600)]
    assert len(words(*records)) == len(records)
