"""What we write into pi's settings."""

from __future__ import annotations

import os

from signet_sync.capture.harnesses.pi import FACTS
from signet_sync.host.harness_settings.harness import Harness, ServerList, bare, program_and_arguments

SETTINGS = Harness(
    "pi",
    lambda environ: FACTS.homes(environ)[0],
    bare("session_start", "before_agent_start", "agent_end", "session_compact", "session_shutdown"),
    scripts={"extensions/signet-sync.js": "extension.js"},
    servers=ServerList(
        lambda environ: os.path.join(FACTS.homes(environ)[0], "mcp.json"),
        lambda data: ("mcpServers",),
        program_and_arguments,
    ),
)
