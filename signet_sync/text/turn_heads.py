"""Knows the heads of turns in our transcripts: who speaks, and when. No words inside a turn can pass for one.

A head begins a line: `## User · TIME`, `## Assistant · TIME`, `## Harness · TIME`, `## Compaction · TIME`; of a tool it
is a list item, ``- `NAME` · TIME``, with the call's arguments behind it and what the tool gave back indented below it.
A line of somebody's words that looks like a head gets a backslash.
"""

from __future__ import annotations

import re
from typing import Literal

from signet_sync.formats.lazy_pattern import late

Speaker = Literal["user", "assistant", "harness", "tool"]

STAMP = r"\d{4}-\d\d-\d\dT[\d:.]{1,20}Z"
TOOL_NAME = r"`[^`\n]{1,200}`"
HEAD = (
    rf"(?:## (?P<role>User|Assistant|Harness|Compaction)|- (?P<sub>sub-agent )?(?P<tool>{TOOL_NAME})) · (?P<at>{STAMP})"
    r"(?P<live> · live)?(?(role)(?=\n|\Z)|(?=\n|\Z| · ))"
)
OUR_HEAD = late(HEAD, re.ASCII)
FORGED = late(
    r"^([ ]{0,3})(?=#{1,6}[ \t]+"
    r"(?:(?:User|Assistant|Compaction)[ \t]*(?:·|#|\(live|$)|(?:Harness|Tool)\b[^\n]{0,210}[·(])"
    rf"|-[ \t]+(?:sub-agent[ \t]+)?{TOOL_NAME}[ \t]+·[ \t]+\d{{4}}-)",
    re.MULTILINE,
)

_SPEAKERS: dict[str, Speaker] = {
    **dict.fromkeys(("user", "human", "me", "用户", "人类"), "user"),
    **dict.fromkeys(
        ("assistant", "ai", "agent", "model", "claude", "codex", "gemini", "助手", "助理"), "assistant"
    ),
    **dict.fromkeys(("system", "developer", "harness", "compaction", "系统"), "harness"),
}  # fmt: skip


def speaker_of(role: str) -> Speaker:
    """Returns who speaks under a role; whoever is neither person, agent nor harness counts as a tool."""
    return _SPEAKERS.get(role.strip().casefold(), "tool")


def label_of(role: str) -> str:
    """Returns how a speaker is shown: `User`, `Assistant`, `Harness`, or a tool by its name."""
    speaker = speaker_of(role)
    return speaker.capitalize() if speaker != "tool" else tool_label(tool_name(role))


def tool_name(name: str) -> str:
    """Returns a tool's name as a head has it: on one line, without backticks."""
    return " ".join(name.replace("`", "'").split())[:200].strip() or "tool"


def tool_label(name: str) -> str:
    """Returns how a tool is shown."""
    return "Tool" if name.casefold() == "tool" else f"Tool {name}"


def head_label(head: re.Match[str]) -> str:
    """Returns how the speaker of one of our heads is shown."""
    if head["role"]:
        return head["role"]
    name = head["tool"].strip("`")
    return f"Sub-agent {name}" if head["sub"] else tool_label(name)
