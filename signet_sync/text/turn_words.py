"""Prepares the words of a turn for a transcript."""

from __future__ import annotations

import re

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.chunking import FORGED
from signet_sync.text.sanitizer import has_controls, sanitize_transcript_v2

_FENCE = late(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)
# What every line begins with that could be a head. Of a text without controls the sanitizer makes no other one: what
# stands in place of a secret begins with a bracket, and ends no line.
_ROLE = r"#{1,6}[ \t]+(?:User|Assistant|Compaction|Harness|Tool)"
_MAY_BE_ROLE = late(rf"\n {{0,3}}{_ROLE}")
_MAY_BE_HEAD = late(rf"\n {{0,3}}(?:{_ROLE}|-[ \t]+(?:sub-agent[ \t]+)?`)")


def words_of(text: str) -> str:
    """Returns words as a turn shows them: they cannot forge a head, and no fence is left open.

    What the sanitizer will remove could hide a head. Else it is left to it, which counts.
    """
    if has_controls(text) or (_MAY_BE_HEAD if "·" in text else _MAY_BE_ROLE).search(f"\n{text}"):
        clean = sanitize_transcript_v2(text)
        text = FORGED.sub(r"\1\\", clean) if FORGED.search(clean) else text
        fence = _open_fence(clean)
    else:
        fence = _open_fence(text)
    text = text.strip("\n")
    return f"{text}\n{fence}" if fence else text


def indent(text: str) -> str:
    """Returns what a tool said as it stands below the tool's head."""
    return "\n".join(f"  {line}" if line.strip() else "" for line in text.split("\n"))


def _open_fence(text: str) -> str:
    """Returns the fence that closes the code block which the text leaves open; empty if there is none."""
    opened = ""
    if "```" not in text and "~~~" not in text:
        return opened
    for match in _FENCE.finditer(text):
        mark, rest = match.groups()
        if not opened:
            # Backticks after a fence of backticks make it inline code.
            opened = "" if mark[0] == "`" and "`" in rest else mark
        elif mark[0] == opened[0] and len(mark) >= len(opened) and not rest.strip():
            opened = ""
    return opened
