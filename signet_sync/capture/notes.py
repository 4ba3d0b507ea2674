"""Asks an agent for the lines with which it hands its work over, where a person sees them; nobody else is asked.

A program that runs a harness (headless, an SDK, CI) reads its answer, and another agent reads that of a sub-agent: a
line more could break them. So a session is asked only if its harness shows that a person sits there. Standard library
only: hooks import it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress

from signet_sync.formats.lazy_pattern import late

LABELS = "Outcome:, Decided:, Next:, Blocked:, Tried:"
REQUEST = (
    f"If a turn edited, decided or stopped, end its report with one to three lines for the next session: {LABELS}"
    " (and the ^handle it ends)"
)
IN_COMPACTION = f"End the summary with the newest lines of these labels, word for word: {LABELS}"
_TAIL = 256 * 1024
_EDITS = late(rb'"name":\s*"(?:Edit|Write|MultiEdit|NotebookEdit|apply_patch)"|\*\*\* (?:Update|Add|Delete) File: ')
_NOTED = late(r"^\W*(?:Outcome|Decided|Next|Blocked|Tried):\W*\s\S", re.MULTILINE)


def wants_note(payload: Mapping[str, object]) -> bool:
    """Returns whether a turn that stops may be continued for its lines: it edited, has none, and was not continued."""
    answer = payload.get("last_assistant_message")
    if payload.get("stop_hook_active") is not False or payload.get("background_tasks") or not isinstance(answer, str):
        return False
    end = part_of_file(payload.get("transcript_path"), -_TAIL)
    return not _NOTED.search(answer[-2_000:]) and _EDITS.search(end) is not None


def continuation() -> str:
    """Returns what a hook prints to continue a turn for its lines; the parsers of transcripts remove it."""
    from signet_sync.formats.managed_block import CLOSING, OPENING  # other stops have no time for it

    reason = f"{OPENING}\n{REQUEST}. Add only these lines now, and do nothing else.\n{CLOSING}"
    return json.dumps({"decision": "block", "reason": reason})


def part_of_file(path: object, size: int) -> bytes:
    """Returns so many bytes of a file's beginning, or of its end if `size` is negative; nothing if that fails."""
    with suppress(OSError, ValueError):
        handle = os.open(path if isinstance(path, str) else "", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.pread(handle, abs(size), max(os.fstat(handle).st_size + size, 0) if size < 0 else 0)
        finally:
            os.close(handle)
    return b""
