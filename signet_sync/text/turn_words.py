"""Prepares the words of a turn for a transcript."""

from __future__ import annotations

import re

from signet_sync.formats.lazy_pattern import late
from signet_sync.text.sanitizer import has_controls, sanitize_transcript_v2

_FORGED = late(r"^([ ]{0,3})(?=#{1,6}[ \t]+(?:User|Assistant|Compaction)[ \t]*(?:·|#|\(live|$))", re.MULTILINE)
_FENCE = late(r"^ {0,3}(`{3,}|~{3,})([^\n]*)$", re.MULTILINE)


def words_of(text: str) -> str:
    """Returns words as a turn shows them: they cannot forge one of our headings, and no fence is left open."""
    if has_controls(text):  # they could hide a forged heading
        text = sanitize_transcript_v2(text)
    text = _FORGED.sub(r"\1\\", text.strip("\n"))
    fence = _open_fence(text)
    return f"{text}\n{fence}" if fence else text


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
