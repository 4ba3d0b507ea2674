"""OpenCode, as version 1.18 writes: one database."""

import json

import apsw
from harness_samples import START_US

PLACE = ".local/share/opencode/opencode.db"
# Into the system prompt of each request, which a compaction does not touch.
STEPS = {
    "start": ("all", [{"hook_event_name": "SessionStart", "source": "startup"}]),
    "prompt": ("lines", [{"hook_event_name": "UserPromptSubmit", "prompt": '"{prompt}"'}]),
    "resume": ("all", [{"hook_event_name": "SessionStart", "source": "startup"}]),
    "compaction": ("", [{"hook_event_name": "PostCompact"}]),
    "end": ("", [{"hook_event_name": "SessionEnd"}]),
}


def write(path, session, cwd, turns, got):
    """What a session got is in no row."""
    path.unlink(missing_ok=True)
    start = START_US // 1_000
    with apsw.Connection(str(path)) as rows:
        rows.execute(
            "create table session (id, parent_id, directory, title, revert, time_created, time_updated);"
            "create table message (id, session_id, time_created, time_updated, data);"
            "create table part (id, message_id, session_id, time_created, time_updated, data);"
        )
        rows.execute("insert into session values (?, null, ?, 'x', null, ?, ?)", (session, cwd, start, start))
        for number, turn in enumerate(turns):
            when = start + number * 1_000
            part = {"type": "text", "text": turn.text}
            if turn.kind == "call":
                state = {"status": "completed", "input": turn.given, "output": turn.back}
                state |= {"metadata": {"structuredContent": turn.back}, "time": {"start": when}}
                part = {"type": "tool", "tool": turn.text, "callID": f"o{number}", "state": state}
            role = "user" if turn.kind == "user" else "assistant"
            data = json.dumps({"role": role, "time": {"created": when}})
            rows.execute("insert into message values (?, ?, ?, ?, ?)", (f"m{number}", session, when, when, data))
            values = (f"p{number}", f"m{number}", session, when, when, json.dumps(part))
            rows.execute("insert into part values (?, ?, ?, ?, ?, ?)", values)
