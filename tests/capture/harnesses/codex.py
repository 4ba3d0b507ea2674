"""Codex, as version 0.169 writes."""

import json

from harness_samples import at

PLACE = ".codex/sessions/2026/03/28/rollout-2026-03-28T22-34-06-{}.jsonl"
_MORE = {"model": "m", "permission_mode": "p"}
STEPS = {
    "start": ("all", [{"hook_event_name": "SessionStart", "source": "startup", **_MORE}]),
    "prompt": ("lines", [{"hook_event_name": "UserPromptSubmit", "turn_id": "t-1", "prompt": "{prompt}", **_MORE}]),
    "resume": ("", [{"hook_event_name": "SessionStart", "source": "resume", **_MORE}]),
    "compaction": (
        "all",
        [{"hook_event_name": "PostCompact", "turn_id": "t-2", "model": "m", "trigger": "auto"},
         {"hook_event_name": "SessionStart", "source": "compact", **_MORE}],
    ),
    "end": ("", [{"hook_event_name": "SessionEnd", "reason": "other"}]),
}  # fmt: skip


def records(session, cwd, turns, got):
    yield {"type": "session_meta", "timestamp": at(0), "payload": {"id": session, "timestamp": at(0), "cwd": cwd}}
    for text in got:
        yield _item(0, type="message", role="developer", content=[{"type": "input_text", "text": text}])
    for number, turn in enumerate(turns):
        if turn.kind != "call":
            kind = "input_text" if turn.kind == "user" else "output_text"
            yield _item(number, type="message", role=turn.kind, content=[{"type": kind, "text": turn.text}])
            continue
        space, _, last = turn.text.rpartition("__")
        call = {"type": "function_call", "name": last, "arguments": json.dumps(turn.given), "call_id": f"c{number}"}
        yield _item(number, **call, **({"namespace": space} if space else {}))
        output = f"Wall time: 0.1 seconds\nOutput:\n{turn.back}"
        yield _item(number, type="function_call_output", call_id=f"c{number}", output=output)
        if not space:
            continue
        result = {"Ok": {"structuredContent": {"text": turn.back}}}
        ended = {"invocation": {"server": space, "tool": last}, "result": result}
        yield {"timestamp": at(number), "type": "event_msg", "payload": {"type": "mcp_tool_call_end", **ended}}
        more = {"server": space, "tool": last, "result": {"structured_content": {"text": turn.back}}}
        yield _item(number, type="mcp_tool_call", **more)


def _item(number, **payload):
    return {"timestamp": at(number), "type": "response_item", "payload": payload}
