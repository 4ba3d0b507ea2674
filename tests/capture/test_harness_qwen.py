"""Qwen Code's records beyond words and calls: rewinds, what the program submitted, compressions, sub-agents."""

from __future__ import annotations

from typing import Any

from transcripts import jsonl, kinds, words

from signet_sync.capture.harnesses.qwen.transcript import read


def record(name: str, parent: str | None, kind: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    shared = {"uuid": name, "parentUuid": parent, "sessionId": "s", "timestamp": "2026-11-28T10:00:00.000Z"}
    return shared | {"type": kind, "cwd": "/code/lantern", "message": {"role": "user", "parts": list(parts)}, **more}


def test_a_rewind_abandons_a_branch() -> None:
    found = read(
        jsonl(
            record("1", None, "user", {"text": "first"}),
            record("2", "1", "assistant", {"text": "an answer"}),
            record("3", "2", "user", {"text": "abandoned"}),
            record("4", "2", "system", subtype="rewind", systemPayload={"targetTurnIndex": 1}),
            record("5", "4", "user", {"text": "instead"}),
        )
    )
    assert words(found, "user") == ["first", "instead"]


def test_the_rest_of_a_session() -> None:
    snapshot = "<state_snapshot>\nThe lamp is lit.\n</state_snapshot>\n\nResume the prior task using the summary above."
    call = {"id": "g1", "name": "agent", "args": {"subagent_type": "Explore", "description": "Look for the lamp"}}
    found = read(
        jsonl(
            record("1", None, "user", {"text": "go on"}, subtype="goal_runtime"),
            record("2", "1", "user", {"text": "done"}, subtype="notification", systemPayload={"displayText": "Shell"}),
            record("3", "2", "user", {"text": "also this"}, subtype="mid_turn_user_message"),
            record("4", "3", "assistant", {"text": "I think", "thought": True}, {"functionCall": call}),
            record("5", "4", "tool_result", {"functionResponse": {"id": "g1", "response": {"error": "no oil"}}}),
            record("6", "5", "system", subtype="chat_compression",
                   systemPayload={"compressedHistory": [{"role": "user", "parts": [{"text": snapshot}]}]}),
            record("7", "6", "system", subtype="custom_title", systemPayload={"customTitle": "The lamp"}),
            record("8", "7", "hologram"),
        ),
        file_name="s.jsonl",
    )  # fmt: skip
    assert kinds(found) == ["event", "user", "subagent", "result", "compaction"]
    assert (found.title, found.project, found.unknown) == ("The lamp", "/code/lantern", {"hologram": 1})
    assert (found.entries[2].name, found.entries[2].text) == ("Explore", "Look for the lamp")
    assert found.entries[3].failed
    assert words(found, "compaction") == ["The lamp is lit."]
