"""Claude Code, as version 2.1.330 writes."""

from harness_samples import at

PLACE = ".claude/projects/-home-ada-code-lantern/{}.jsonl"
STEPS = {
    "start": ("all", [{"hook_event_name": "SessionStart", "source": "startup", "model": "m"}]),
    "prompt": ("lines", [{"hook_event_name": "UserPromptSubmit", "prompt_id": "p-1", "prompt": "{prompt}"}]),
    "resume": (
        "",
        [{"hook_event_name": "SessionStart", "source": "resume", "seconds_since_last_response": 2,
          "context_tokens": 1020, "prompt_cache_likely_expired": False, "estimated_cache_write_usd": 0.006}],
    ),
    "compaction": (
        "all",
        [{"hook_event_name": "SessionStart", "source": "compact", "prompt_id": "p-2", "model": "m"},
         {"hook_event_name": "PostCompact", "prompt_id": "p-2", "trigger": "manual",
          "compact_summary": "<summary>A lamp.</summary>"}],
    ),
    "end": ("", [{"hook_event_name": "SessionEnd", "prompt_id": "p-2", "reason": "other"}]),
}  # fmt: skip


def records(session, cwd, turns, got):
    shared = {"sessionId": session, "cwd": cwd, "isSidechain": False}
    for text in got:
        for kind, more in (("hook_success", {"stdout": text}), ("hook_additional_context", {"content": [text]})):
            yield {"type": "attachment", "attachment": {"type": kind, "hookEvent": "SessionStart", **more}} | shared
        block = {"type": "text", "text": f"SessionStart hook additional context: {text}"}
        yield {"type": "api-request-blob", "hash": "0", "message": {"role": "system", "content": [block]}} | shared
    for number, turn in enumerate(turns):
        blocks = [(turn.kind, {"type": "text", "text": turn.text})]
        if turn.kind == "call":
            use = {"type": "tool_use", "id": f"t{number}", "name": turn.text, "input": turn.given}
            content = [{"type": "text", "text": turn.back}]
            blocks = [
                ("assistant", use),
                ("user", {"type": "tool_result", "tool_use_id": use["id"], "content": content}),
            ]
        for role, block in blocks:
            details = {"structuredContent": {"hits": [{"text": turn.back}]}} if block["type"] == "tool_result" else None
            yield (
                shared
                | {"type": role, "timestamp": at(number), "message": {"role": role, "content": [block]}}
                | ({"toolUseResult": details} if details else {})
            )
