"""GitHub Copilot CLI's events beyond words and calls: rewinds, sub-agents, compactions, what the program submitted."""

from __future__ import annotations

from typing import Any

from transcripts import jsonl, kinds, words

from signet_sync.capture.harnesses.copilot.transcript import read
from signet_sync.capture.harnesses.reader import Conversation


def event(kind: str, *, name: str = "e", agent: str = "", **data: Any) -> dict[str, Any]:
    found = {"type": kind, "data": data, "id": name, "timestamp": "2026-11-28T10:00:00.000Z"}
    return found | ({"agentId": agent} if agent else {})


def parsed(*events: dict[str, Any]) -> Conversation:
    return read(jsonl(*events))


def test_a_rewind_takes_out_what_followed() -> None:
    said = [event("user.message", name=f"u{n}", content=f"word{n}") for n in range(3)]
    rewind = event("session.snapshot_rewind", upToEventId="u1", eventsRemoved=2)
    assert words(parsed(*said, rewind, event("user.message", content="again")), "user") == ["word0", "again"]
    assert len(words(parsed(*said, event("session.snapshot_rewind", upToEventId="gone")), "user")) == 3


def test_what_the_program_submitted_is_no_prompt() -> None:
    found = parsed(
        event("user.message", content="a skill", source="skill-pdf"),
        event("user.message", content="go on", isAutopilotContinuation=True),
        event("user.message", content="of another", agent="a1"),
        event("user.message", content="mine"),
    )
    assert words(found, "user") == ["mine"]


def test_the_rest_of_a_session() -> None:
    found = parsed(
        event("session.start", sessionId="s", startTime="2026-11-28T09:00:00.000Z", context={"cwd": "/code/lantern"}),
        event("session.title_changed", title="The lamp"),
        event("tool.execution_start", toolCallId="1", toolName="task",
              arguments={"agent_type": "explore", "description": "Look for the lamp", "prompt": "x"}),
        event("assistant.message", content="of a sub-agent", agent="a1"),
        event("tool.execution_complete", toolCallId="1", success=True, result={"content": "It is lit."}),
        event("tool.execution_start", toolCallId="2", toolName="bash", arguments={"command": "make"}),
        event("tool.execution_complete", toolCallId="2", success=True, shellExecution={"exitCode": 2},
              result={"content": "no rule"}),
        event("tool.execution_start", toolCallId="3", toolName="bash", arguments={"command": "make"}),
        event("tool.execution_complete", toolCallId="3", success=True,
              result={"content": "no rule\n<shellId: 3 completed with exit code 1>"}),
        event("session.compaction_complete", success=True, summaryContent="The lamp is lit."),
        event("session.compaction_complete", success=False),
        event("session.error", message="out of oil"),
        event("abort", reason="user_initiated"),
        event("hologram.shown"),
    )  # fmt: skip
    assert kinds(found) == ["subagent", "result", *["tool", "result"] * 2, "compaction", "event", "event"]
    assert (found.session_id, found.project, found.title) == ("s", "/code/lantern", "The lamp")
    assert (found.entries[0].name, found.entries[0].text) == ("explore", "Look for the lamp")
    assert [one.failed for one in found.entries if one.kind == "result"] == [False, True, True]
    assert words(found, "compaction") == ["The lamp is lit."]
    assert found.unknown == {"hologram.shown": 1}
