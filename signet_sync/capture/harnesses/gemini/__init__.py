"""Gemini CLI: command hooks that answer in JSON, and a log of patches for each session."""

from __future__ import annotations

import json
import os
from contextlib import suppress

from signet_sync.host.harness_settings.facts import Environ, JsonFacts, Payload, part_of_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LOG = 4 * 1024 * 1024


class _Gemini(JsonFacts):
    place = ".gemini"
    folders = ("tmp",)
    pattern = r"tmp/[^/]+/chats/session-[^/]+\.jsonl"
    silence = "{}"
    # At a resume, it drops each message that begins with a hook's context; without a terminal that is the first prompt,
    # with the user's words. Behind the words of a prompt it stays, so what a start gives waits for the next one.
    starts_at_prompts = True
    reports_compaction = False
    instructions = ("GEMINI.md",)
    first_prompt = ("gemini", "-i")
    result = ("tool_response", "llmContent")
    failed = r"\nExit Code: [1-9]"
    hooks = "settings.json"
    # PreCompress fires on every turn, compressed or not, and no event follows it: it is of no use.
    events = (
        ("SessionStart", 10, ""),
        ("BeforeAgent", 5, ""),
        ("AfterTool", 1, "run_shell_command|write_file|replace"),
        ("AfterAgent", 10, ""),
        ("SessionEnd", 10, ""),
    )
    servers = "settings.json"

    def handler(self, command: str, seconds: int) -> dict[str, Any]:
        return {"type": "command", "command": command, "name": "signet-sync", "timeout": 1000 * seconds}

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        """Returns whether somebody typed a prompt: it is the last of those that only the program's window records."""
        place, prompt = payload.get("transcript_path"), payload.get("prompt")
        if not isinstance(place, str) or not isinstance(prompt, str):
            return False
        with suppress(ValueError, TypeError, KeyError, AttributeError):
            records = json.loads(part_of_file(os.path.join(os.path.dirname(os.path.dirname(place)), "logs.json"), _LOG))
            said = [one["message"] for one in records if one["sessionId"] == payload.get("session_id")]
            return bool(said) and prompt.strip().startswith(said[-1])
        return False


FACTS = _Gemini()
