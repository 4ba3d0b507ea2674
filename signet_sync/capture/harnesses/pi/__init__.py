"""pi: an extension of ours, and a JSON Lines file for each session."""

from __future__ import annotations

from signet_sync.host.harness_settings.facts import Environ, HarnessFacts, Payload


class _Pi(HarnessFacts):
    place, variable = ".pi/agent", "PI_CODING_AGENT_DIR"
    folders = ("sessions",)
    pattern = r"sessions/[^/]+/[^/]+\.jsonl"
    pathless = "not to be kept"  # `--no-session`
    first_prompt = ("pi",)
    scripts = (("extensions/signet-sync.js", "extension.js"),)
    script_events = (
        *("session_start", "before_agent_start", "tool_result", "agent_end", "session_compact"),
        "session_shutdown",
    )
    servers = "mcp.json"

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        return payload.get("attended") is True  # our extension sees the mode


FACTS = _Pi()
