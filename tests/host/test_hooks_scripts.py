"""The scripts of OpenCode, OpenClaw and pi, run by a real Node: what they hand over and inject, and how they fail."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from signet_sync.host.harness_settings.harness import Program, script
from signet_sync.host.harness_settings.harness import script_words as words

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="node is not on this machine")

SCRIPTS = {"opencode": "plugin.js", "openclaw": "handler.js", "pi": "extension.js"}
# Writes down what it is called with; answers the start of a session and a prompt with a memory.
RECORDER = """
import json, os, sys
text = sys.stdin.read()
with open(sys.argv[1], "a") as log:
    log.write(json.dumps([sys.argv[2:], json.loads(text)]) + "\\n")
event = json.loads(text)["hook_event_name"]
known = {"SessionStart": "what you know", "UserPromptSubmit": "what was said on it", "PostToolUse": "what failed"}
print(known.get(event, "never shown"))
"""

OPENCODE = """
import { SignetSync } from "./script.mjs"
const hooks = await SignetSync({ directory: "/code/lantern" })
const fire = (type, properties) => hooks.event({ event: { type, properties } })
const ask = async (sessionID) => {
  const output = { system: ["before"] }
  await hooks["experimental.chat.system.transform"]({ sessionID }, output)
  return output.system
}
await fire("session.created", { info: { id: "ses_1" } })
await fire("session.created", { info: { id: "ses_2", parentID: "ses_1" } })
const text = (text, more) => ({ type: "text", text, ...more })
await hooks["chat.message"]({ sessionID: "ses_1" }, { parts: [text("Why?"), { type: "file" }, text("Really?")] })
await hooks["chat.message"]({ sessionID: "ses_1" }, { parts: [text("not theirs", { synthetic: true })] })
await hooks["chat.message"]({ sessionID: "ses_2" }, { parts: [text("of a sub-agent")] })
const ran = { output: "cold", metadata: { exit: 2 } }
await hooks["tool.execute.after"]({ tool: "bash", sessionID: "ses_1", args: { command: "lamp" } }, ran)
await hooks["tool.execute.after"]({ tool: "write", sessionID: "ses_1", args: { filePath: "/a.py" } }, { output: "" })
await hooks["tool.execute.after"]({ tool: "read", sessionID: "ses_1", args: { filePath: "/a.py" } }, { output: "" })
await hooks["tool.execute.after"]({ tool: "bash", sessionID: "ses_2", args: { command: "lamp" } }, { output: "" })
await fire("session.idle", { sessionID: "ses_2" })
await fire("session.compacted", { sessionID: "ses_1" })
await fire("session.idle", { sessionID: "ses_3" })
await fire("file.edited", { file: "x" })
await fire("session.idle", undefined)
const asked = [await ask("ses_1"), await ask("ses_1"), await ask("ses_2"), await ask(undefined)]
console.log(JSON.stringify([...asked, ran.output]))
await hooks.dispose()
"""

OPENCLAW = """
import handler from "./script.mjs"
const context = { workspaceDir: "/claw", sessionId: "s1", bootstrapFiles: [] }
const sessionKey = "agent:main:main"
await handler({ type: "agent", action: "bootstrap", sessionKey, context })
await handler({ type: "agent", action: "bootstrap", sessionKey, context })
const groupEntry = { sessionId: "s1", chatType: "group", groupId: "1@g.us" }
const crowd = { ...context, sessionEntry: groupEntry, bootstrapFiles: [] }
await handler({ type: "agent", action: "bootstrap", sessionKey: "agent:main:whatsapp:group:1@g.us", context: crowd })
const sessionEntry = { sessionId: "s1", sessionFile: "/claw/s1.jsonl" }
await handler({ type: "session", action: "compact:after", context: { workspaceDir: "/claw", sessionEntry } })
const next = { workspaceDir: "/claw", previousSessionEntry: sessionEntry }
await handler({ type: "command", action: "new", context: next })
const other = { sessionId: "s2", sessionFile: "db:2" }
await handler({ type: "session", action: "auto-reset", context: { sessionEntry: other } })
await handler({ type: "message", action: "received" })
console.log(JSON.stringify([context.bootstrapFiles, crowd.bootstrapFiles.length]))
"""


PI = """
import extension from "./script.mjs"
const handlers = {}
extension({ on: (name, handler) => { handlers[name] = handler } })
let branch = [{ type: "message" }]
const sessionManager = { getSessionId: () => "s1", getSessionFile: () => "/pi/s1.jsonl", getBranch: () => branch }
const fire = (name, event = {}) => handlers[name](event, { cwd: "/code/lantern", mode: "tui", sessionManager })
await fire("session_start", { reason: "startup" })
const first = await fire("before_agent_start", { prompt: "Why?" })
const second = await fire("before_agent_start", {})
const content = [{ type: "text", text: "cold" }]
const call = { content, structuredContent: { exit: 2 } }
const ran = await fire("tool_result", { toolName: "bash", input: { command: "lamp" }, isError: true, ...call })
await fire("tool_result", { toolName: "edit", input: { path: "a.py" }, isError: false, ...call })
await fire("tool_result", { toolName: "read", input: { path: "a.py" }, isError: false, ...call })
await fire("agent_end")
await fire("session_compact", { reason: "manual" })
const third = await fire("before_agent_start", {})
for (const last of [{ customType: "signet-memory" }, { type: "compaction" }]) {
  branch = [...branch, last]
  await fire("session_start", { reason: "resume" })
  await fire("before_agent_start", {})
}
await fire("session_shutdown", { reason: "quit" })
console.log(JSON.stringify([...[first, second, third].map((one) => one?.message ?? null), ran ?? null]))
"""


def run(folder: Path, harness: str, driver: str, program: Program, **environ: str) -> tuple[Any, list[tuple[str, Any]]]:
    """What the driver prints, and the calls: the last word of each, and the document on its stdin."""
    (folder / "script.mjs").write_text(script(harness, SCRIPTS[harness], program), encoding="utf-8")
    (folder / "driver.mjs").write_text(driver, encoding="utf-8")
    done = subprocess.run(
        [str(NODE), "driver.mjs"], cwd=folder, env={"HOME": "/home/mira", **environ}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    log = folder / "log"
    calls = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return json.loads(done.stdout), [(words[-1], document) for words, document in calls]


@pytest.fixture
def recorder(tmp_path: Path) -> Program:
    place = tmp_path / 'a "recorder" \u2028 é.py'
    place.write_text(RECORDER)
    return Program((sys.executable, str(place), str(tmp_path / "log")))


@pytest.mark.parametrize("harness", SCRIPTS)
def test_the_words_are_read_back(harness: str, recorder: Program) -> None:
    program = Program(recorder.words, "/vaults/it's mine")
    assert words(script(harness, SCRIPTS[harness], program)) == program.start


def test_opencode(tmp_path: Path, recorder: Program) -> None:
    printed, calls = run(tmp_path, "opencode", OPENCODE, recorder)
    given = ["before", "what you know", "what was said on it"]
    ran = "cold\n\nwhat failed"
    assert printed == [given, given, ["before"], ["before"], ran], "the system prompt is made for each request"
    told = [document for what, document in calls if what == "opencode"]
    assert sorted((d["hook_event_name"], d["session_id"]) for d in told) == [
        ("PostCompact", "ses_1"), ("PostToolUse", "ses_1"), ("PostToolUse", "ses_1"), ("SessionEnd", "ses_1"),
        ("SessionEnd", "ses_3"), ("SessionStart", "ses_1"), ("Stop", "ses_3"), ("UserPromptSubmit", "ses_1"),
    ]  # fmt: skip
    calls_told = [(d["tool_input"], d.get("error")) for d in told if "tool_input" in d]
    assert calls_told == [({"command": "lamp"}, "cold"), ({"file_path": "/a.py"}, None)]
    assert [d["prompt"] for d in told if "prompt" in d] == ["Why?\n\nReally?"]
    assert [d["source"] for d in told if d["hook_event_name"] == "SessionStart"] == ["startup"]
    assert {(d["cwd"], d["transcript_path"]) for d in told} == {
        ("/code/lantern", "/home/mira/.local/share/opencode/opencode.db")
    }


def test_openclaw(tmp_path: Path, recorder: Program) -> None:
    printed, calls = run(tmp_path, "openclaw", OPENCLAW, recorder)
    memory = {
        "name": "SIGNET_MEMORY.md", "path": "/claw/SIGNET_MEMORY.md", "content": "what you know", "missing": False,
    }  # fmt: skip
    assert printed == [[memory, memory], 1]  # the other place is asked for anew
    told = [d for what, d in calls if what == "openclaw"]
    told.sort(key=lambda d: (d["session_id"], d["hook_event_name"], "chat_type" not in d))
    assert told == [
        {"hook_event_name": "PostCompact", "session_id": "s1", "cwd": "/claw", "transcript_path": "/claw/s1.jsonl"},
        {"hook_event_name": "SessionEnd", "session_id": "s1", "cwd": "/claw", "transcript_path": "/claw/s1.jsonl"},
        {"hook_event_name": "SessionStart", "session_id": "s1", "cwd": "/claw",
         "session_key": "agent:main:whatsapp:group:1@g.us", "chat_type": "group", "group_id": "1@g.us"},
        {"hook_event_name": "SessionStart", "session_id": "s1", "cwd": "/claw", "session_key": "agent:main:main"},
        {"hook_event_name": "SessionEnd", "session_id": "s2"},
    ]  # fmt: skip


def test_pi(tmp_path: Path, recorder: Program) -> None:
    printed, calls = run(tmp_path, "pi", PI, recorder)
    message = {"customType": "signet-memory", "display": False}
    both, start = "what you know\nwhat was said on it", "what you know"
    ran = {
        "content": [{"type": "text", "text": "cold"}, {"type": "text", "text": "what failed"}],
        "structuredContent": {"exit": 2},
    }
    assert printed == [message | {"content": both}, None, message | {"content": start}, ran]
    told = [d for what, d in calls if what == "pi"]
    assert [(d["hook_event_name"], d.get("source")) for d in told] == [
        ("SessionStart", "startup"), ("UserPromptSubmit", None), ("PostToolUse", None), ("PostToolUse", None),
        ("Stop", None), ("PostCompact", None), ("SessionStart", "compact"), ("SessionStart", "resume"),
        ("SessionStart", "compact"), ("SessionEnd", None),
    ]  # fmt: skip
    calls_told = [(d["tool_input"], d.get("error")) for d in told if "tool_input" in d]
    assert calls_told == [({"command": "lamp"}, "cold"), ({"file_path": "a.py"}, None)]
    shared = {(d["session_id"], d["transcript_path"], d["cwd"], d["attended"]) for d in told}
    assert shared == {("s1", "/pi/s1.jsonl", "/code/lantern", True)}


@pytest.mark.parametrize("switch", ["SIGNET_NO_HOOKS", "SIGNET_BYPASS", "SIGNET_SYNC_CHILD"])
def test_switched_off(tmp_path: Path, recorder: Program, switch: str) -> None:
    assert run(tmp_path, "opencode", OPENCODE, recorder, **{switch: "1"}) == ([["before"]] * 4 + ["cold"], [])
    assert run(tmp_path, "openclaw", OPENCLAW, recorder, **{switch: "1"}) == ([[], 0], [])
    assert run(tmp_path, "pi", PI, recorder, **{switch: "1"}) == ([None] * 4, [])


def test_a_program_that_is_gone_harms_nobody(tmp_path: Path) -> None:
    gone = Program(("/gone/python", "-m", "signet_sync"))
    assert run(tmp_path, "opencode", OPENCODE, gone) == ([["before"]] * 4 + ["cold"], [])
    assert run(tmp_path, "openclaw", OPENCLAW, gone) == ([[], 0], [])
    assert run(tmp_path, "pi", PI, gone) == ([None] * 4, [])
