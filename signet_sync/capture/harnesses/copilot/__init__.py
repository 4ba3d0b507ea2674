"""GitHub Copilot CLI: command hooks under Claude Code's names, and a log of events for each session."""

from __future__ import annotations

import json
import os

from signet_sync.capture.harnesses.facts import Environ, HarnessFacts, Payload


class _Copilot(HarnessFacts):
    place, variable = ".copilot", "COPILOT_HOME"
    folders = ("session-state",)
    pattern = r"session-state/[^/]+/events\.jsonl"
    reports_compaction = False
    first_prompt = ("copilot", "-i")
    result = ("tool_result", "text_result_for_llm")
    failed = r"completed with exit code [1-9]\d*>\s*$"

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

    def printed(self, event: str, text: str) -> str:
        return json.dumps({"additionalContext": text})


FACTS = _Copilot()
