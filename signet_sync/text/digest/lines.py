"""Classifies a transcript's lines: beginning of a turn, tool call, fence, note of the harness."""

from __future__ import annotations

import re
from typing import Literal

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.turn_heads import HEAD, OUR_HEAD, TOOL_NAME

# Meaningful lines are not longer, and rules read only this much of a line.
LINE_LIMIT = 4_000

Speaker = Literal["user", "assistant", "harness", "other"]


_OURS = late(rf"^{HEAD}", re.MULTILINE | re.ASCII)
_ROLES: dict[str, Speaker] = {
    "user": "user", "human": "user", "me": "user", "用户": "user", "人类": "user",
    "assistant": "assistant", "ai": "assistant", "agent": "assistant", "claude": "assistant", "codex": "assistant",
    "gemini": "assistant", "model": "assistant", "助手": "assistant", "助理": "assistant",
    "system": "other", "tool": "other", "系统": "other", "compaction": "other",
}  # fmt: skip
_OUR_ROLES: dict[str, Speaker] = {"User": "user", "Assistant": "assistant"}
_ROLE = "|".join(_ROLES)
_LABEL = late(rf"[ ]{{0,3}}(?:\*\*)?({_ROLE})(?:\*\*)?[ \t]*[:：](?:\*\*)?[ \t]*(.*)", re.IGNORECASE | re.DOTALL)
_HEADING = late(
    rf"(?:#{{1,6}}[ \t]+|\*\*)({_ROLE})(?:\*\*)?(?:[ \t]+{TOOL_NAME})?[ \t]*(?:[·(|—-].*)?:?[ \t]*", re.IGNORECASE
)
# A fence of backticks with more backticks behind it is inline code.
_FENCE = late(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)", re.DOTALL)
_CODE = late(r"(`+) ?([^`].*?) ?\1", re.DOTALL)
_FAILED = late(r"(?:^| · )failed$")
_GAVE_BACK = "gave back"

SHELLS = frozenset(
    ["bash", "shell", "sh", "exec", "exec_command", "local_shell", "local_shell_call", "run_shell_command", "terminal",
     "run_terminal_cmd", "powershell", "execute_command"]
)  # fmt: skip
EDITORS = frozenset(
    ["edit", "multiedit", "write", "notebookedit", "apply_patch", "write_file", "replace", "edit_file", "create_file",
     "str_replace_editor", "str_replace_based_edit_tool", "patch"]
)  # fmt: skip


def is_ours(text: str) -> bool:
    """Returns whether a text has turn headings in our format."""
    return _OURS.search(text) is not None


def call_of(line: str) -> tuple[str, str, bool] | None:
    """Returns name, detail and failure of a tool call's line; None for a list item in a message."""
    head = OUR_HEAD.match(line)
    if head is None or head["tool"] is None:
        return None
    detail = line[head.end() :].removeprefix(" · ").rstrip()
    outcome = _FAILED.search(detail)
    detail = detail[: outcome.start()] if outcome else detail
    code = _CODE.fullmatch(detail)
    detail = code[2] if code else detail
    return head["tool"].strip("`").lower(), "" if head["sub"] or detail == _GAVE_BACK else detail, outcome is not None


def fence_of(line: str) -> str:
    """Returns the fence that a line opens, else an empty text; the fence of a tool's output is indented."""
    mark = _FENCE.fullmatch(line) if "```" in line or "~~~" in line else None
    return (mark[1] or mark[2]) if mark else ""


def turn_of(line: str, *, ours: bool) -> tuple[Speaker, str] | None:
    """Returns the speaker whose turn a line begins, and the words on that line."""
    if ours:
        head = OUR_HEAD.match(line)
        return (_OUR_ROLES.get(head["role"], "harness"), "") if head and head["role"] else None
    heading = _HEADING.fullmatch(line)
    if heading:
        return _ROLES[heading[1].lower()], ""
    label = _LABEL.match(line)
    return (_ROLES[label[1].lower()], label[2]) if label else None
