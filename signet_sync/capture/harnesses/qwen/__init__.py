"""Qwen Code: command hooks like Claude Code's, and a JSON Lines file for each session."""

from __future__ import annotations

import json
import os
from contextlib import suppress

from signet_sync.host.harness_settings.facts import Environ, JsonFacts, Payload, part_of_file

_STATUS = 4_096


class _Qwen(JsonFacts):
    place, variable = ".qwen", "QWEN_HOME"
    folders = ("projects",)
    pattern = r"projects/[^/]+/chats/[^/]+\.jsonl"
    instructions = ("QWEN.md", "AGENTS.md")
    first_prompt = ("qwen", "-i")
    memory = ("memories/*.md",)
    memory_beside = ("../memory/*.md",)
    hooks = "settings.json"
    events = (
        ("SessionStart", 10, ""),
        ("UserPromptSubmit", 5, ""),
        ("PostToolUse", 1, "run_shell_command|write_file|edit"),  # the text of PreToolUse never reaches the model
        ("PostToolUseFailure", 1, "run_shell_command"),
        ("PostCompact", 10, ""),
        ("Stop", 10, ""),
        ("SessionEnd", 10, ""),
    )
    servers = "settings.json"

    def homes(self, environ: Environ) -> tuple[str, ...]:
        (settings,) = super().homes(environ)
        return environ.get("QWEN_RUNTIME_DIR") or settings, settings

    def settings_folder(self, environ: Environ) -> str:
        return self.homes(environ)[-1]

    def payload(self, given: Payload, environ: Environ) -> Payload:
        """Returns the document with another source: a resumed session has lost what the hook of its start gave."""
        return {**given, "source": "startup"} if given.get("source") == "resume" else given

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        """Returns whether its window runs: that alone notes its process beside the transcript, and leaves the note."""
        place = str(payload.get("transcript_path")).removesuffix(".jsonl")
        with suppress(ValueError, TypeError, KeyError, OverflowError, OSError):
            os.kill(json.loads(part_of_file(f"{place}.runtime.json", _STATUS))["pid"], 0)
            return True
        return False


FACTS = _Qwen()
