"""GitHub Copilot CLI: command hooks under Claude Code's names, and a log of events for each session."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from signet_sync.host.harness_settings.facts import Environ, HarnessFacts, Payload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Copilot(HarnessFacts):
    place, variable = ".copilot", "COPILOT_HOME"
    folders = ("session-state",)
    pattern = r"session-state/[^/]+/events\.jsonl"
    reports_compaction = False
    first_prompt = ("copilot", "-i")
    result = ("tool_result", "text_result_for_llm")
    failed = r"completed with exit code [1-9]\d*>\s*$"
    # It reads every file of this folder, and gives documents with Claude Code's names to events that have them.
    hooks = "hooks/signet-sync.json"
    events = (
        ("SessionStart", 10, ""),
        ("UserPromptSubmit", 5, ""),
        ("PostToolUse", 1, "Bash|Write|Edit"),  # not PreToolUse: a hook of that which fails forbids the call
        ("Stop", 10, ""),
        ("SessionEnd", 10, ""),
    )
    servers = "mcp-config.json"

    def payload(self, given: Payload, environ: Environ) -> Payload:
        """Returns the document with the transcript's path, which only that of a stop has.

        A resumed session has lost what the hook of its start gave before.
        """
        session, more = given.get("session_id"), {"source": "startup"} if "source" in given else {}
        if "transcript_path" not in given and isinstance(session, str):
            place = ("session-state", os.path.basename(session), "events.jsonl")
            more["transcript_path"] = os.path.join(self.own(environ), *place)
        return {**given, **more}

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        """Returns whether its window runs, which has a process of its own; `-p` in one of its calls inherits that."""
        return "COPILOT_LOADER_PID" in environ and "COPILOT_AGENT_SESSION_ID" not in environ

    def server_entry(self, words: Sequence[str]) -> dict[str, Any]:
        return {"type": "local", "tools": ["*"], **super().server_entry(words)}

    def format_output(self, event: str, text: str) -> str:
        return json.dumps({"additionalContext": text})


FACTS = _Copilot()
