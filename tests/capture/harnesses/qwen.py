"""Qwen Code, as version 0.24 writes."""

from harness_samples import at

PLACE = ".qwen/projects/-home-ada-code-lantern/chats/{}.jsonl"
EDITOR = "write_file"
_MORE = {"permission_mode": "default", "timestamp": "2026-03-28T22:34:06.792Z"}
STEPS = {
    "start": ("all", [{"hook_event_name": "SessionStart", "source": "startup", "model": "m", **_MORE}]),
    "prompt": (
        "lines",
        [{"hook_event_name": "UserPromptSubmit", "prompt": "{prompt}", "prompt_id": "p-1", **_MORE},
         {"hook_event_name": "UserPromptSubmit", "prompt": "", "prompt_id": "p-1", **_MORE}],
    ),
    "resume": ("all", [{"hook_event_name": "SessionStart", "source": "resume", "model": "m", **_MORE}]),
    "compaction": (
        "all",
        [{"hook_event_name": "PostCompact", "trigger": "manual", "compact_summary": "A lamp.", **_MORE},
         {"hook_event_name": "SessionStart", "source": "compact", "model": "m", **_MORE}],
    ),
    "end": ("", [{"hook_event_name": "SessionEnd", "reason": "other", **_MORE}]),
}  # fmt: skip


def records(session, cwd, turns, got):
    last = None

    def record(number, kind, parts, **more):
        nonlocal last
        found = {"uuid": f"{number}-{kind}", "parentUuid": last, "sessionId": session, "timestamp": at(number)}
        last = found["uuid"]
        role = {"assistant": "model"}.get(kind, "user")
        return found | {"type": kind, "cwd": cwd, "message": {"role": role, "parts": parts}, **more}

    spans = [one.replace("<", "&lt;").replace(">", "&gt;") for one in got]
    context = [
        {"text": f"<qwen:user-prompt-submit-context>\n{span}\n</qwen:user-prompt-submit-context>"} for span in spans
    ]
    for number, turn in enumerate(turns):
        if turn.kind == "user":
            payload = {"displayText": turn.text, "hookContext": "\n".join(spans)} if got else {}
            yield record(number, "user", [{"text": turn.text}, *context], systemPayload=payload)
            yield record(number, "system", [], subtype="attribution_snapshot", systemPayload={"snapshot": {}})
        elif turn.kind == "assistant":
            yield record(number, "assistant", [{"text": turn.text}])
        else:
            shared = {"id": f"g{number}", "name": turn.text}
            yield record(number, "assistant", [{"functionCall": {**shared, "args": turn.given}}])
            result = {"callId": f"g{number}", "status": "success", "resultDisplay": turn.back}
            answer = {"functionResponse": {**shared, "response": {"output": turn.back}}}
            yield record(number, "tool_result", [answer], toolCallResult=result)
