"""Classifies a transcript's lines: beginning of a turn, tool call, fence, note of the harness."""

from __future__ import annotations

import re
from typing import Literal

from signet_sync.formats.lazy_pattern import late

# Meaningful lines are not longer, and rules read only this much of a line.
LINE_LIMIT = 4_000

Speaker = Literal["user", "assistant", "other"]


_STAMP = r"\d{4}-\d\d-\d\d(?:[T ][\d:.]+Z?)?"
_OURS = late(rf"^## (User|Assistant|Compaction)(?: · .{{0,40}}?{_STAMP}.{{0,80}})$", re.MULTILINE | re.ASCII)
_ROLES: dict[str, Speaker] = {
    "user": "user", "human": "user", "me": "user", "用户": "user", "人类": "user",
    "assistant": "assistant", "ai": "assistant", "agent": "assistant", "claude": "assistant", "codex": "assistant",
    "gemini": "assistant", "model": "assistant", "助手": "assistant", "助理": "assistant",
    "system": "other", "tool": "other", "系统": "other", "compaction": "other",
}  # fmt: skip
_ROLE = "|".join(_ROLES)
_LABEL = late(rf"[ ]{{0,3}}(?:\*\*)?({_ROLE})(?:\*\*)?[ \t]*[:：](?:\*\*)?[ \t]*(.*)", re.IGNORECASE | re.DOTALL)
_HEADING = late(rf"(?:#{{1,6}}[ \t]+|\*\*)({_ROLE})(?:\*\*)?[ \t]*(?:[·(|—-].*)?:?[ \t]*", re.IGNORECASE)
# A fence of backticks with more backticks behind it is inline code.
_FENCE = late(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)", re.DOTALL)
_CALL = late(r"- (sub-agent )?`([^`]{1,100})`(?: (.*))?", re.DOTALL)
_CODE = late(r"(`+) ?([^`].*?) ?\1", re.DOTALL)
_EVENT = late(r"([_*])(?![_*\s]).*\1")
_FAILED = late(r"(?:^|[ ])[·—] failed$")
_GAVE_BACK = "gave back"

SHELLS = frozenset(
    ["bash", "shell", "sh", "exec", "exec_command", "local_shell", "local_shell_call", "run_shell_command", "terminal",
     "run_terminal_cmd", "powershell", "execute_command"]
)  # fmt: skip
EDITORS = frozenset(
    ["edit", "multiedit", "write", "notebookedit", "apply_patch", "write_file", "replace", "edit_file", "create_file",
     "str_replace_editor", "str_replace_based_edit_tool", "patch"]
)  # fmt: skip
READERS = frozenset(["read", "read_file", "read_many_files", "view", "notebookread", "view_image", "open_file"])
_OTHERS = frozenset(
    ["agent", "task", "taskoutput", "skill", "todowrite", "todoread", "toolsearch", "webfetch", "websearch",
     "web_fetch", "web_search", "web_search_call", "google_web_search", "glob", "grep", "ls", "list", "list_directory",
     "find", "search_file_content", "bashoutput", "killshell", "killbash", "exitplanmode", "enterplanmode",
     "askuserquestion", "update_plan", "write_stdin", "save_memory", "process", "browser", "tool"]
)  # fmt: skip
_TOOLS = SHELLS | EDITORS | READERS | _OTHERS


def is_ours(text: str) -> bool:
    """Returns whether a text has turn headings in our format."""
    return _OURS.search(text) is not None


def call_of(line: str) -> tuple[str, str, bool] | None:
    """Returns name, detail and failure of a tool call's line; None for a list item in a message."""
    call = _CALL.fullmatch(line)
    if call is None:
        return None
    name, detail = call[2].lower(), (call[3] or "").rstrip()
    outcome = _FAILED.search(detail)
    if not (outcome or call[1] or name in _TOOLS or name.startswith("mcp__")):
        return None
    detail = detail[: outcome.start()].rstrip() if outcome else detail
    code = _CODE.fullmatch(detail)
    detail = code[2] if code else detail
    return name, "" if call[1] or detail == _GAVE_BACK else detail, outcome is not None


def fence_of(line: str) -> str:
    """Returns the fence that a line opens, else an empty text; the fence of a tool's output is indented."""
    mark = _FENCE.fullmatch(line) if "```" in line or "~~~" in line else None
    return (mark[1] or mark[2]) if mark else ""


def note_of(line: str) -> str | None:
    """Returns the harness's note on a line; None if the line belongs to a message."""
    return line.strip("_*") if _EVENT.fullmatch(line) and not line.startswith(("**", "__")) else None


def turn_of(line: str, *, ours: bool) -> tuple[Speaker, str] | None:
    """Returns the speaker whose turn a line begins, and the words on that line."""
    if ours:
        heading = _OURS.fullmatch(line)
        return (_ROLES[heading[1].lower()], "") if heading else None
    heading = _HEADING.fullmatch(line)
    if heading:
        return _ROLES[heading[1].lower()], ""
    label = _LABEL.match(line)
    return (_ROLES[label[1].lower()], label[2]) if label else None
