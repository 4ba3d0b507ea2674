"""Codex, as version 0.169 writes."""

import json

from harness_samples import at, case

from signet_sync.formats.managed_block import CLOSING, OPENING

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


_ID = "01a1ffcf-0000-7000-8000-000000000001"
_PREAMBLE = "Another language model started to solve this problem and produced a summary of its thinking. Here it is:\n"


def _line(kind, **payload):
    return {"timestamp": at(0), "type": kind, "payload": payload}


def _meta(**more):
    return _line("session_meta", **({"id": _ID, "cwd": "/home/ada/lantern", "source": "cli"} | more))


def _said(role, *texts, kinds=None):
    more = {"internal_chat_message_metadata_passthrough": {"content_item_kinds": kinds}} if kinds else {}
    return _item(0, type="message", role=role, content=[{"type": "input_text", "text": one} for one in texts], **more)


def _event(kind, **payload):
    return _line("event_msg", type=kind, **payload)


def _in_name_of_user(text, *told):
    return case([_meta(), _said("user", text)], *told)


def _output(output, text, *, failed=False):
    return case([_item(0, type="function_call_output", call_id="c", output=output)], f"result {text}", failed=[failed])


def _program(code, name, text):
    call = _item(0, type="custom_tool_call", name="exec", input=code, call_id="1")
    return case([call], f"tool {text}", name=[name])


_PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n*** Add File: b.py\n+tools.ls({cmd: `x`})\n*** End Patch"
_SPAWNED = {"subagent": {"thread_spawn": {"parent_thread_id": "p1", "depth": 1}}}
_TURNS = [_said("user", "a"), _said("assistant", "1"), _said("user", "b"), _said("assistant", "2")]
_BADLY = '{"wall_time_seconds":0.1,"exit_code":2,"output":"boom"}'
CASES = {
    **{
        f"begun by {source}": case(
            [_meta(source=source, git={"repository_url": "x", "branch": "wick"}), _said("user", "x")], "user x",
            headless=source == "exec", remote="x", branch="wick",
        )
        for source in ("exec", "cli", "vscode", None)
    },
    "a session": case(
        [
            _meta(), _said("developer", "be good"), _said("user", "<environment_context>\n  <cwd>/x</cwd>\n"),
            _said("user", "Light the lantern.", kinds=["user.text"]),
            _event("user_message", message="Light the lantern."),
            _item(0, type="reasoning", summary=[{"type": "summary_text", "text": "hm"}]),
            _item(0, type="function_call", name="exec_command", arguments='{"cmd": "make light"}', call_id="c1"),
            _item(0, type="function_call_output", call_id="c1",
                  output="Chunk ID: 1\nProcess exited with code 0\nOutput:\nlit\n"),
            _said("assistant", "It is lit."), _event("agent_message", message="It is lit."),
        ],
        "user Light the lantern.", "tool make light", "result lit", "assistant It is lit.",
        name=["", "exec_command", "exec_command", ""], call=["", "c1", "c1", ""], failed=[False] * 4,
        session_id=_ID, project="/home/ada/lantern", parent=None, turns=2,
    ),
    "AGENTS.md": _in_name_of_user("# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>"),
    "instructions": _in_name_of_user("<user_instructions>\nbe terse\n</user_instructions>"),
    "an editor's context": _in_name_of_user(
        "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nFix a.py", "user Fix a.py"
    ),
    "files": _in_name_of_user(
        "# Files mentioned by the user:\n\n## a.py: /x/a.py\n\n## My request for Codex:\nFix a.py", "user Fix a.py"
    ),
    "our block": _in_name_of_user(f"Go on.\n{OPENING}old{CLOSING}", "user Go on."),
    "a shell command": _in_name_of_user(
        "<user_shell_command>\n<command>\nls -l\n</command>\n<result>\n0\n</result>\n</user_shell_command>",
        "event ! ls -l",
    ),
    "a quoted tag": _in_name_of_user("What is <environment_context>?", "user What is <environment_context>?"),
    "the harness says which blocks are the user's": case(
        [_said("user", "injected", "mine", kinds=["hooks.additional_context", "user.text"])], "user mine"
    ),
    "output: plain": _output("plain", "plain"),
    "output: blocks": _output([{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": ""}],
                              "a\n[image]"),
    "output: no success": _output({"content": "no", "success": False}, "no", failed=True),
    "output: a code in JSON": _output(
        json.dumps({"output": "boom\n", "metadata": {"exit_code": 2}}), "boom", failed=True
    ),
    "output: a code in its head": _output("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nboom", "boom", failed=True),
    "output: a code in a program's": _output(f"Script completed\nWall time 0.1 seconds\nOutput:\n{_BADLY}", _BADLY,
                                             failed=True),
    "output: a program fails": _output("Script failed\nWall time 0.1 seconds\nOutput:\nboom", "boom", failed=True),
    "output: a code alone": _output('"exit_code":2', '"exit_code":2'),
    "output: words like a head": _output("Exit code of the lantern\nOutput:\nstays",
                                         "Exit code of the lantern\nOutput:\nstays"),
    "output: none": _output(None, ""),
    "calls of all kinds": case(
        [
            _item(0, type="custom_tool_call", name="apply_patch", input=_PATCH, call_id="1"),
            _item(0, type="local_shell_call", action={"type": "exec", "command": ["git", "status"]}, call_id="2"),
            _item(0, type="web_search_call", action={"type": "search", "query": "lanterns"}),
            _item(0, type="function_call", name="shell", arguments="{not json", call_id="4"),
            _item(0, type="function_call", name="spawn_agent", call_id="5",
                  arguments='{"agent_type": "explorer", "message": "look"}'),
        ],
        "tool a.py, b.py", "tool git status", "tool lanterns", "tool {not json", "subagent look",
        name=["apply_patch", "local_shell", "web_search", "shell", "explorer"],
    ),
    "a program: a command": _program(
        r'const r = await tools.exec_command({cmd:"sed -n \"1p\" a.py","workdir":"/x"}); text(r.output);',
        "exec_command", 'sed -n "1p" a.py',
    ),
    "a program: commands": _program(
        'await Promise.all([tools.exec_command({ "cmd": "ls" }), tools.exec_command({cmd: `make ${x}`})])',
        "exec_command", "ls; make ${x}",
    ),
    "a program: a patch": _program(
        r'const patch = "*** Begin Patch\n*** Update File: a.py\n@@\n"; text(await tools.apply_patch(patch));',
        "apply_patch", "a.py",
    ),
    "a program: another tool": _program(
        "text(await tools.write_stdin({session_id:7}))", "write_stdin", "text(await tools.write_stdin({session_id:7}))"
    ),
    "a program: no tool": _program("text(ALL_TOOLS)", "exec", "text(ALL_TOOLS)"),
    "the answer to a request for a summary is no word to the user": case(
        [_said("user", "go"), _said("assistant", "Lit so far."), _line("compacted", message=f"{_PREAMBLE}Lit so far.")],
        "user go", "compaction Lit so far.",
    ),
    "a summary that is encrypted": case(
        [_said("assistant", "Something else."), _line("compacted", message="")],
        "assistant Something else.", "compaction ",
    ),
    "a rollback drops a turn": case([*_TURNS, _event("thread_rolled_back", num_turns=1)], "user a", "assistant 1"),
    "a rollback drops all": case([*_TURNS, _event("thread_rolled_back", num_turns=9)]),
    "a rollback of nothing": case(
        [*_TURNS, _event("thread_rolled_back", num_turns="1")], "user a", "assistant 1", "user b", "assistant 2"
    ),
    "a sub-agent's thread": case([_meta(source=_SPAWNED)], parent="p1"),
    "a folder that the header lacks": case(
        [_meta(cwd=None), _line("turn_context", cwd="/x"), _line("turn_context", cwd="/y")], project="/x"
    ),
    "a review": case([_meta(source={"subagent": "review"})], parent="unnamed"),
    "a review of a session": case([_meta(source={"subagent": "review"}, session_id="root")], parent="root"),
    "a fork keeps its own header": case([_meta(), _meta(id="other", source={"subagent": "review"})], session_id=_ID),
    "the name of the file says which session": case(
        [_said("user", "x")], "user x", file_name=f"/x/rollout-2026-03-28T22-34-06-{_ID}.jsonl", session_id=_ID
    ),
}  # fmt: skip
