"""GitHub Copilot CLI, as version 1.0.102 writes."""

from harness_samples import at, case

PLACE = ".copilot/session-state/{}/events.jsonl"
HAS_PATH, EDITOR = False, "create"
STEPS = {
    "start": ("all", [{"hook_event_name": "SessionStart", "source": "new", "initial_prompt": "Hello"}]),
    "prompt": ("lines", [{"hook_event_name": "UserPromptSubmit", "prompt": "{prompt}"}]),
    "resume": ("all", [{"hook_event_name": "SessionStart", "source": "resume", "initial_prompt": "Hello"}]),
    "end": ("", [{"hook_event_name": "SessionEnd", "reason": "complete"}]),
}


def records(session, cwd, turns, got):
    context = {"cwd": cwd, "gitRoot": cwd, "branch": "main"}
    yield _event(0, "session.start", sessionId=session, version=1, startTime=at(0), context=context)
    for number, text in enumerate(got):
        shared = {"hookInvocationId": str(number), "hookType": "sessionStart"}
        yield _event(0, "hook.start", input={"source": "new", "sessionId": session, "cwd": cwd}, **shared)
        yield _event(0, "hook.end", success=True, output={"additionalContext": text}, **shared)
    reminder = "\n".join(["<system_reminder>", *got, "</system_reminder>"])
    for number, turn in enumerate(turns):
        if turn.kind == "user":
            yield _event(number, "user.message", content=turn.text, transformedContent=f"{turn.text}\n\n{reminder}")
            yield _event(number, "system.message", role="system", content="You are a program.")
        elif turn.kind == "assistant":
            yield _event(number, "assistant.message", content=turn.text, toolRequests=[], turnId="0")
        else:
            call = {"toolCallId": f"t{number}"}
            asked = call | {"name": turn.text, "arguments": turn.given, "type": "function"}
            yield _event(number, "assistant.message", content="", toolRequests=[asked])
            yield _event(number, "tool.execution_start", toolName=turn.text, arguments=turn.given, **call)
            result = {"content": turn.back, "detailedContent": turn.back}
            yield _event(number, "tool.execution_complete", success=True, result=result, **call)
    yield _event(9, "session.shutdown", codeChanges={"linesAdded": 0})


def _event(number, kind, **data):
    return {"type": kind, "data": data, "id": f"{number}-{kind}", "timestamp": at(number), "parentId": None}


def _events(*given):
    """Events, each its kind, its data, and of some more members."""
    return [_event(0, kind, **data) | (more[0] if more else {}) for kind, data, *more in given]


_SAID = [("user.message", {"content": f"word{n}"}, {"id": f"u{n}"}) for n in range(3)]
_CALLED = {"toolName": "bash", "arguments": {"command": "make"}}
CASES = {
    "a rewind takes out what followed": case(
        _events(*_SAID, ("session.snapshot_rewind", {"upToEventId": "u1"}), ("user.message", {"content": "again"})),
        "user word0", "user again",
    ),
    "a rewind to what is gone takes out nothing": case(
        _events(*_SAID, ("session.snapshot_rewind", {"upToEventId": "gone"})), "user word0", "user word1", "user word2"
    ),
    "what the program submitted is no prompt": case(
        _events(
            ("user.message", {"content": "a skill", "source": "skill-pdf"}),
            ("user.message", {"content": "go on", "isAutopilotContinuation": True}),
            ("user.message", {"content": "of another"}, {"agentId": "a1"}), ("user.message", {"content": "mine"}),
        ),
        "user mine",
    ),
    "the rest of a session": case(
        _events(
            ("session.start", {"sessionId": "s", "startTime": at(0), "context": {"cwd": "/code/lantern"}}),
            ("tool.execution_start", {"toolCallId": "1", "toolName": "task", "arguments":
             {"agent_type": "explore", "description": "Look for the lamp", "prompt": "x"}}),
            ("assistant.message", {"content": "of a sub-agent"}, {"agentId": "a1"}),
            ("tool.execution_complete", {"toolCallId": "1", "success": True, "result": {"content": "It is lit."}}),
            ("tool.execution_start", {"toolCallId": "2", **_CALLED}),
            ("tool.execution_complete", {"toolCallId": "2", "success": True, "shellExecution": {"exitCode": 2},
             "result": {"content": "no rule"}}),
            ("tool.execution_start", {"toolCallId": "3", **_CALLED}),
            ("tool.execution_complete", {"toolCallId": "3", "success": True, "result":
             {"content": "no\n<shellId: 3 completed with exit code 1>"}}),
            ("session.compaction_complete", {"success": True, "summaryContent": "The lamp is lit."}),
            ("session.compaction_complete", {"success": False}), ("session.error", {"message": "out of oil"}),
            ("abort", {"reason": "user_initiated"}), ("hologram.shown", {}),
        ),
        "subagent Look for the lamp", "result It is lit.", "tool make", "result no rule", "tool make",
        "result no\n<shellId: 3 completed with exit code 1>", "compaction The lamp is lit.",
        "event error: out of oil", "event interrupted by the user",
        failed=[False, False, False, True, False, True, False, False, False],
        name=["explore", "explore", "bash", "bash", "bash", "bash", "", "", ""],
        session_id="s", project="/code/lantern",
    ),
}  # fmt: skip
