"""Gemini CLI, as version 0.61 writes."""

from harness_samples import at

PLACE = ".gemini/tmp/lantern/chats/session-2026-03-28T22-34-{:.8}.jsonl"
_TIME = {"timestamp": "2026-03-29T10:00:00.000Z"}


def _prompt(text):
    return {"hook_event_name": "BeforeAgent", "prompt": text, **_TIME}


# What a start gives comes behind the words of the next prompt; it reports no compaction.
STEPS = {
    "start": ("all", [{"hook_event_name": "SessionStart", "source": "startup", **_TIME}, _prompt("Hello")]),
    "prompt": ("lines", [_prompt("{prompt}")]),
    "resume": ("", [{"hook_event_name": "SessionStart", "source": "resume", **_TIME}, _prompt("Hello again")]),
    "compaction": (None, []),
    "end": ("", [{"hook_event_name": "SessionEnd", "reason": "exit", **_TIME}]),
}


def records(session, cwd, turns, got):
    yield {"sessionId": session, "startTime": at(0), "lastUpdated": at(9), "directories": [cwd], "kind": "main"}
    spans = [f"<hook_context>{one.replace('<', '&lt;').replace('>', '&gt;')}</hook_context>" for one in got]
    for number, turn in enumerate(turns):
        message = {"id": f"m{number}", "timestamp": at(number), "type": turn.kind, "content": turn.text}
        if turn.kind == "user":
            yield message | {"content": [{"text": turn.text}, *({"text": span} for span in spans)]}
        elif turn.kind == "assistant":
            yield message | {"type": "gemini"}
        else:
            response = {"id": f"g{number}", "name": turn.text, "response": {"output": turn.back}}
            call = {"id": f"g{number}", "name": turn.text, "args": turn.given, "status": "success"}
            call |= {"result": [{"functionResponse": response}], "displayName": turn.text, "resultDisplay": turn.back}
            yield message | {"type": "gemini", "content": "", "toolCalls": [call]}
            parts = [{"functionResponse": response}]
            yield message | {"id": f"u{number}", "type": "user", "content": parts}
