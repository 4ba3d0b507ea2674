"""pi, as version 1.6 writes: OpenClaw's older files have the same format. What our extension injects is a message."""

from harness_samples import at, sample

PLACE = ".pi/agent/sessions/--home-ada-code-lantern--/2026-03-28T22-34-06-792Z_{}.jsonl"
STEPS = {
    "start": ("all", [{"hook_event_name": "SessionStart", "source": "startup"}]),
    "prompt": ("lines", [{"hook_event_name": "UserPromptSubmit", "prompt": "{prompt}"}]),
    "resume": ("", [{"hook_event_name": "SessionStart", "source": "resume"}]),
    "compaction": (
        "all",
        [{"hook_event_name": "PostCompact", "trigger": "manual"},
         {"hook_event_name": "SessionStart", "source": "compact"}],
    ),
    "end": ("", [{"hook_event_name": "SessionEnd", "reason": "quit"}]),
}  # fmt: skip


def records(session, cwd, turns, got):
    header, *rest = sample("openclaw").records(session, cwd, turns, ())
    yield header
    message = {"role": "system", "content": "", "sections": {"preamble": "You are a program."}}
    yield {"type": "message", "id": "s", "parentId": None, "timestamp": at(0), "message": message}
    for number, text in enumerate(got):
        own = {"customType": "signet-memory", "content": text, "display": False}
        yield {"type": "custom_message", "id": f"c{number}", "timestamp": at(0), **own}
    yield from rest
