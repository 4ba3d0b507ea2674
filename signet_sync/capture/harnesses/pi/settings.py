"""What we write into pi's settings."""

from __future__ import annotations

from signet_sync.capture.harnesses.pi import FACTS
from signet_sync.host.harness_settings.harness import Harness, bare, servers_in

SETTINGS = Harness(
    "pi",
    FACTS.own,
    bare("session_start", "before_agent_start", "tool_result", "agent_end", "session_compact", "session_shutdown"),
    scripts={"extensions/signet-sync.js": "extension.js"},
    servers=servers_in(FACTS.own, "mcp.json"),
)
