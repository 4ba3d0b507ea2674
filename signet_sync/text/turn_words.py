"""Prepares the words of a turn for a transcript."""

from __future__ import annotations

import re

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.sanitizer import sanitize_transcript_v2
from signet_sync.text.turn_heads import FORGED

_FENCE = late(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)


def words_of(text: str) -> str:
    """Returns words as a turn shows them: they cannot forge a head, and no fence is left open.

    What the sanitizer will remove could hide a head, or close a fence. Else it is left to it, which counts.
    """
    clean = sanitize_transcript_v2(text)
    text = (FORGED.sub(r"\1\\", clean) if FORGED.search(clean) else text).strip("\n")
    fence = _open_fence(clean)
    return f"{text}\n{fence}" if fence else text


def indented(text: str) -> str:
    """Returns what a tool said as it stands below the tool's head."""
    return "\n".join(f"  {line}" if line.strip() else "" for line in text.split("\n"))


def _open_fence(text: str) -> str:
    """Returns the fence that closes the code block which the text leaves open; empty if there is none."""
    opened = ""
    for match in _FENCE.finditer(text):
        mark, rest = match.groups()
        if not opened:
            # Backticks after a fence of backticks make it inline code.
            opened = "" if mark[0] == "`" and "`" in rest else mark
        elif mark[0] == opened[0] and len(mark) >= len(opened) and not rest.strip():
            opened = ""
    return opened
