"""Claude Code, as version 2.1.330 writes."""

import json

from harness_samples import at, case

from signet_sync.formats.managed_block import BACKGROUND, CLOSING, OPENING, STORED

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


_ID, _OTHER = (f"6f0c1d2e-0000-4000-8000-00000000000{n}" for n in (1, 2))
_NAME = f"/x/{_ID}.jsonl"


def _record(kind, content, uuid="", parent=None, **more):
    shared = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": _ID, "cwd": "/home/ada/lantern"}
    return shared | {"timestamp": at(0), "message": {"role": kind, "content": content}} | more


def _user(content, *place, **more):
    return _record("user", content, *place, **more)


def _said(content, *place, **more):
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return _record("assistant", blocks, *place, **more)


def _call(name, given, key="t1"):
    return {"type": "tool_use", "id": key, "name": name, "input": given}


def _back(content, key="t1", **more):
    return {"type": "tool_result", "tool_use_id": key, "content": content, **more}


def _in_name_of_user(content, *told):
    return case([_user(content, "u1")], *told, file_name=_NAME)


def _refusal(name, told, *own, **more):
    calls = [_said([_call(name, {"file_path": "wick.py"})], "a1"), _user([_back(told, **more)], "r1", "a1")]
    kept = told.partition("\n")[0] if own else told
    return case(calls, "tool wick.py", f"result {kept}", *own)


def _boundary(before):
    return {
        "type": "system", "subtype": "compact_boundary", "uuid": "b1", "parentUuid": None, "logicalParentUuid": before,
        "timestamp": at(0), "compactMetadata": {"trigger": "manual"}, "sessionId": _ID,
    }  # fmt: skip


def _rewound(*more):
    return [_user("one", "u1"), _user("A", "ua", "u1"), *more]


_REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the "
    "user said:"
)
_NO = f"{_REFUSED}\nleave the wick alone"
_GIVEN = {"description": "look around", "subagent_type": "Explore", "prompt": "…"}
_REPORT = [{"type": "text", "text": "Found."}, {"type": "text", "text": "agentId: a8 (…)"}]
_B = _user("B", "ub", "u1")
_SUMMARY = _user(
    "This session is being continued from a previous conversation that ran out of context.\n\nSummary:\n1. Lit.",
    "s1", "b1", isCompactSummary=True,
)  # fmt: skip
_WHOLE = json.dumps(_user("é", "u1"), ensure_ascii=False).encode()
CASES = {
    "a session": case(
        [
            _user("Light the lantern.", "u1"), _said([{"type": "thinking", "thinking": "hm"}], "a1", "u1"),
            _said("On it.", "a2", "a1"), _said([_call("Bash", {"command": "make  light\n"})], "a3", "a2"),
            _user([_back("lit", is_error=False)], "r1", "a3"), _said("It is lit.", "a4", "r1"),
        ],
        "user Light the lantern.", "assistant On it.", "tool make light", "result lit", "assistant It is lit.",
        name=["", "", "Bash", "Bash", ""], call=["", "", "t1", "t1", ""], failed=[False] * 5, turns=3, remark="",
        file_name=_NAME, session_id=_ID, project="/home/ada/lantern", parent=None,
    ),
    "blocks": _in_name_of_user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "user a\n\nb"),
    "an image": _in_name_of_user([{"type": "text", "text": "see"}, {"type": "image", "source": {"data": "aGk="}}],
                                 "user see\n\n[image]"),
    "a command": _in_name_of_user("<command-name>/model</command-name>\n  <command-args>opus</command-args>",
                                  "event /model opus"),
    "a command with words": _in_name_of_user(
        "<command-name>/fix</command-name>\n<command-args>the wick smokes</command-args>", "user /fix the wick smokes"
    ),
    "a shell": _in_name_of_user("<bash-input>ls</bash-input>", "event ! ls"),
    "a reminder": _in_name_of_user("<system-reminder>\nbe good\n</system-reminder>\nGo on.", "user Go on."),
    "a quoted tag": _in_name_of_user("Why does <system-reminder> show up in </system-reminder> here?",
                                     "user Why does <system-reminder> show up in </system-reminder> here?"),
    "an interruption": _in_name_of_user("[Request interrupted by user for tool use]", "event interrupted by the user"),
    "a caveat": _in_name_of_user(
        "Caveat: The messages below were generated by the user while running local commands. …"
    ),
    "our block": _in_name_of_user(f"before {OPENING}old news{CLOSING} after", "user before  after"),
    "our block, cut off": _in_name_of_user(f"before {OPENING}\n{BACKGROUND}/w. This is data.\nold", "user before "),
    "our mark, then our block": _in_name_of_user(f"{OPENING} is a mark. {OPENING}\n{STORED}\nold{CLOSING} So.",
                                                 f"user {OPENING} is a mark.  So."),
    "our block alone": _in_name_of_user(f"{OPENING}old news{CLOSING}"),
    "an open file": _in_name_of_user("<ide_opened_file>The user opened a.py</ide_opened_file>\nFix it", "user Fix it"),
    "a task's end": _in_name_of_user(
        "<task-notification>\n<tool-use-id>t9</tool-use-id>\n<status>completed</status>\n"
        "<summary>Agent done</summary>\n<result>The report.</result>\n</task-notification>",
        "event Agent done", "result The report.",
    ),
    "what is left out": case(
        [
            _user("a caveat", "u1", isMeta=True),
            {"type": "api-request-blob", "sessionId": _ID, "message": {"role": "user", "content": "a copy"}},
            {"type": "attachment", "uuid": "x", "attachment": {"type": "hook_success", "content": "injected"}},
            {"type": "hologram", "message": {"role": "user", "content": "from the future"}},
            _said("No response requested.", "a1"), _user("real", "u2"), _user("real", "u2"),
        ],
        "user real",
    ),
    "words typed while the assistant worked stand in an attachment only": case(
        [{"type": "attachment", "uuid": "q", "attachment": {"type": "queued_command", "prompt": "and the porch"}}],
        "user and the porch",
    ),
    "a failure": case([_user([_back("boom", is_error=True)], "r1")], "result boom", failed=[True]),
    "a refusal is the person's word": _refusal("Edit", _NO, "user leave the wick alone", is_error=True),
    "no failure is no refusal": _refusal("Edit", _NO),
    "a question left unanswered": _refusal(
        "Edit", f"{_REFUSED}\nThe user wants to clarify these questions.\nleave the wick", is_error=True
    ),
    "a server's words for it": _refusal("mcp__pier__light", _NO, is_error=True),
    "a refusal that was printed": _refusal("Edit", f"cat: {_NO}", is_error=True),
    "the launch of a sub-agent is no result": case(
        [
            _said([_call("Agent", _GIVEN)], "a1"),
            _user([_back("Async agent launched…")], "r1", "a1", toolUseResult={"isAsync": True, "agentId": "a7"}),
            _said([_call("Task", _GIVEN, "t2")], "a2", "r1"),
            _user([_back(_REPORT, "t2")], "r2", "a2", toolUseResult={"agentId": "a8"}),
        ],
        "subagent look around", "subagent look around", "result Found.",
    ),
    "a sub-agent's file": case(
        [_user("Look.", "u1", isSidechain=True, agentId="a7")], "user Look.",
        file_name="agent-a7.jsonl", session_id="a7", parent=_ID, turns=1,
    ),
    "one that names no session": case(
        [{"type": "user", "agentId": "a7", "message": {"content": "x"}}], "user x", parent="unnamed"
    ),
    "records of a session that this one continues belong to it": case(
        [_user("old", "u1", sessionId=_OTHER), _user("new", "u2", "u1")], "user old", "user new",
        file_name=_NAME, session_id=_ID,
    ),
    "a rewind leaves only the active branch": case(
        [
            _user("one", "u1"), _said("1", "a1", "u1"), _user("wrong", "u2", "a1"), _said("wrong too", "a2", "u2"),
            _user("right", "u3", "a1"), _said("good", "a3", "u3"),
        ],
        "user one", "assistant 1", "user right", "assistant good",
    ),
    "going back to an older branch": case(
        _rewound(_B, {"type": "last-prompt", "leafUuid": "ua"}), "user one", "user A"
    ),
    "going back without choosing another way yet": case(
        _rewound(_B, {"type": "last-prompt", "leafUuid": "u1"}), "user one", "user B"
    ),
    "a mark that is older than the last record": case(
        _rewound({"type": "last-prompt", "leafUuid": "ua"}, _B), "user one", "user B"
    ),
    "parallel calls fork the graph, and all stay": case(
        [
            _user("both", "u1"), _said([_call("Read", {"file_path": "a"}, "t1")], "a1", "u1"),
            _said([_call("Read", {"file_path": "b"}, "t2")], "a2", "a1"), _user([_back("A", "t1")], "r1", "a1"),
            _user([_back("B", "t2")], "r2", "a2"), _said("done", "a3", "r2"),
        ],
        "user both", "tool a", "tool b", "result A", "result B", "assistant done",
    ),
    "a broken graph loses nothing": case(
        [
            _user("one", "u1", "gone"), _said("1", "a1", "u1"), _user("two", "u2", "lost"), _user("three", "u3", "u3"),
            _user("four"),
        ],
        "user one", "assistant 1", "user two", "user three", "user four",
    ),
    "boundary and summary are one, and the branch goes on before it": case(
        [
            _user("one", "u1"), _user("dead", "u2", "u1"), _user("two", "u3", "u1"), _boundary("u3"), _SUMMARY,
            _user("three", "u4", "s1"),
        ],
        "user one", "user two", "compaction 1. Lit.", "user three", name=["", "", "manual", ""],
    ),
    "a boundary alone": case([_boundary("gone")], "compaction "),
    "a summary alone": case([_SUMMARY], "compaction 1. Lit."),
    "damaged and torn lines": case(
        [_WHOLE, b"\n", b"{no json\n", b"[" * 100_000, b'{"n": ' + b"9" * 5000 + b"}", b"7", _WHOLE[:-5]],
        "user é",
    ),
    "bytes that are no UTF-8": case([_WHOLE.replace("é".encode(), b"\xff")], "user \ufffd"),
    "its branch, and where its worktree was made": case(
        [
            _user("a", "u1", gitBranch="wick"), _user("b", "u2", "u1", gitBranch="HEAD"),
            {"type": "worktree-state", "worktreeSession": {"originalCwd": "/code"}},
        ],
        "user a", "user b", branch="wick", worktree_of="/code",
    ),
    **{
        f"a prompt from each of {entries}": case(
            [_user("x", f"u{n}", f"u{n - 1}" if n else None, entrypoint=one) for n, one in enumerate(entries)],
            *["user x"] * len(entries), headless=headless,
        )
        for entries, headless in (
            (("sdk-cli",), True), (("sdk-cli", "sdk-cli"), True), (("sdk-py",), True), (("",), False),
            (("cli",), False),
            (("sdk-cli", "cli"), False), (("sdk-ts", "sdk-ts"), False), (("sdk-cli", ""), False),
        )
    },
    "an empty file": case([], remark="the file is empty"),
    "no transcript": case(
        [b"no", b"json"], remark="it is no transcript"
    ),
    "times never run backwards, and missing ones take the one before": case(
        [_user("a", timestamp=None), _user("b", timestamp=at(9)), _user("c", timestamp=at(3)), _user("d", timestamp=7)],
        "user a", "user b", "user c", "user d", at=[9, 9, 9, 9],
    ),
    "no times": case([_user("a", timestamp=None)], "user a", at_us=[0]),
}  # fmt: skip
