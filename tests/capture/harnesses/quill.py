"""Quill, which does not exist."""

from harness_samples import at

PLACE = ".quill/sessions/{}.jsonl"
STEPS = {
    "start": ("all", [{"hook_event_name": "SessionStart", "source": "startup"}]),
    "prompt": ("lines", [{"hook_event_name": "UserPromptSubmit", "prompt": "{prompt}"}]),
    "resume": ("", [{"hook_event_name": "SessionStart", "source": "resume"}]),
    "end": ("", [{"hook_event_name": "SessionEnd"}]),
}


def records(session, cwd, turns, got):
    for number, turn in enumerate(turns):
        text = "\n".join([*got, turn.text]) if turn.kind == "user" else turn.text
        if turn.kind != "call":
            yield {"role": turn.kind, "text": text, "time": at(number), "cwd": cwd}
            continue
        call = {"tool": turn.text, "call": f"q{number}", "time": at(number), "cwd": cwd}
        yield {"role": "tool", "given": turn.given, **call}
        yield {"role": "result", "text": turn.back, **call}
