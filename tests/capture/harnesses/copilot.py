"""GitHub Copilot CLI, as version 1.0.102 writes."""

from harness_samples import at

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
