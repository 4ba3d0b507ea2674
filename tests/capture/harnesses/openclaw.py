"""OpenClaw's older files; its hook runs in the gateway."""

from harness_samples import at

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
