"""Writes a past session as Claude Code keeps it."""

import os
import re
from typing import Any
from uuid import UUID, uuid5

from signet_sync.capture.harnesses.claude_code import folder
from signet_sync.capture.harnesses.restored import PastSession, Restored
from signet_sync.host.harness_settings.facts import Environ

_LONGEST = 200  # characters of a folder's name; a longer one has a hash at its end
_NO_TOKENS = {"input_tokens": 0, "output_tokens": 0}


def restore(session: PastSession, environ: Environ) -> Restored:
    """Returns what Claude Code resumes in the session's folder."""
    cwd = os.path.realpath(session.folder)
    name = re.sub(r"[^A-Za-z0-9]", "-", cwd)
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}-{_hash(cwd)}"
    records: list[dict[str, Any]] = []
    for number, turn in enumerate(session.turns):
        message: dict[str, Any] = {"role": turn.role, "content": turn.text}
        if turn.role == "assistant":
            blocks, made = [{"type": "text", "text": turn.text}], f"msg_restored_{number}"
            message |= {
                "id": made,
                "type": "message",
                "model": "restored",
                "content": blocks,
                "stop_reason": "end_turn",
            }
            message |= {"stop_sequence": None, "usage": _NO_TOKENS}
        records.append({
            "type": turn.role, "uuid": str(uuid5(UUID(session.id), str(number))),
            "parentUuid": records[-1]["uuid"] if records else None, "sessionId": session.id, "timestamp": turn.at,
            "cwd": cwd, "isSidechain": False, "userType": "external", "version": "2.0.0", "gitBranch": "",
            "message": message,
        })  # fmt: skip
    path = os.path.join(folder(environ), "projects", name, f"{session.id}.jsonl")
    return Restored(path, records, f"claude --resume {session.id}")


def _hash(text: str) -> str:
    """Returns the hash with which it tells long folders apart: of 32 bits, as Java has it, in base 36."""
    value = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        value = (value * 31 + unit) & 0xFFFFFFFF
    value = abs(value - (1 << 32) if value >> 31 else value)
    digits = ""
    while value or not digits:
        value, digit = divmod(value, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits
