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

from signet_sync.formats.injected_block import CLOSING, OPENING

LABELS = "Outcome:, Decided:, Next:, Blocked:, Tried:"
REQUEST = (
    f"If a turn edited, decided or stopped, end its report with one to three lines for the next session: {LABELS}"
    " (and the ^handle it ends)"
)
IN_COMPACTION = f"End the summary with the newest lines of these labels, word for word: {LABELS}"
# What Claude Code calls itself where a person sits before it; `sdk-cli` is `claude -p`.
_ATTENDED = frozenset(("cli", "claude-vscode", "claude-jetbrains", "claude-desktop"))
_SOURCES = frozenset(("cli", "vscode"))  # of Codex; `exec` is without a person
_FIRST_LINE, _TAIL, _LOG = 256 * 1024, 256 * 1024, 4 * 1024 * 1024
_EDITS = re.compile(
    rb'"name":\s*"(?:Edit|Write|MultiEdit|NotebookEdit|apply_patch)"|\*\*\* (?:Update|Add|Delete) File: '
)
_NOTED = re.compile(r"^\W*(?:Outcome|Decided|Next|Blocked|Tried):\W*\s\S", re.MULTILINE)


def is_attended(harness: str, payload: Mapping[str, object], environ: Mapping[str, str] = os.environ) -> bool:
    """Returns whether a person sits before a session, by its hook's document and environment; False if in doubt."""
    if environ.get("CI", "").lower() not in ("", "0", "false") or payload.get("agent_id"):
        return False
    if harness == "claude-code":
        return environ.get("CLAUDE_CODE_ENTRYPOINT") in _ATTENDED
    if harness == "codex":
        return _source(payload.get("transcript_path")) in _SOURCES
    if harness == "gemini":
        return _typed(payload)
    return harness == "opencode" and payload.get("attended") is True  # our plug-in sees the program's words


def wants_note(payload: Mapping[str, object]) -> bool:
    """Returns whether a turn that stops may be continued for its lines: it edited, has none, and was not continued."""
    answer = payload.get("last_assistant_message")
    if payload.get("stop_hook_active") is not False or payload.get("background_tasks") or not isinstance(answer, str):
        return False
    return (
        not _NOTED.search(answer[-2_000:]) and _EDITS.search(_read(payload.get("transcript_path"), -_TAIL)) is not None
    )


def continuation() -> str:
    """Returns what a hook prints to continue a turn for its lines; the parsers of transcripts remove it."""
    reason = f"{OPENING}\n{REQUEST}. Add only these lines now, and do nothing else.\n{CLOSING}"
    return json.dumps({"decision": "block", "reason": reason})


def _source(path: object) -> str:
    """Returns how a session of Codex was begun, by the first record of its file, which exists when it starts."""
    with suppress(ValueError, TypeError, KeyError):
        return str(json.loads(_read(path, _FIRST_LINE).split(b"\n", 1)[0])["payload"]["source"])
    return ""


def _typed(payload: Mapping[str, object]) -> bool:
    """Returns whether somebody typed a prompt of Gemini CLI: it is the last of those that only its window records."""
    place, prompt = payload.get("transcript_path"), payload.get("prompt")
    if not isinstance(place, str) or not isinstance(prompt, str):
        return False
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        records = json.loads(_read(os.path.join(os.path.dirname(os.path.dirname(place)), "logs.json"), _LOG))
        said = [one["message"] for one in records if one["sessionId"] == payload.get("session_id")]
        return bool(said) and prompt.strip().startswith(said[-1])
    return False


def _read(path: object, size: int) -> bytes:
    """Returns so many bytes of a file's beginning, or of its end if `size` is negative; nothing if that fails."""
    with suppress(OSError, ValueError):
        handle = os.open(path if isinstance(path, str) else "", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.pread(handle, abs(size), max(os.fstat(handle).st_size + size, 0) if size < 0 else 0)
        finally:
            os.close(handle)
    return b""
