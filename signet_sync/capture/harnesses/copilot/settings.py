"""What we write into GitHub Copilot CLI's settings."""

from __future__ import annotations

from signet_sync.capture.harnesses.copilot import FACTS
from signet_sync.host.harness_settings.harness import Harness, program_and_arguments, servers_in

# In seconds. It reads every file of this folder, and gives documents with Claude Code's names to events that have them.
SETTINGS = Harness(
    "copilot",
    FACTS.own,
    {event: {"timeout": 10} for event in ("SessionStart", "Stop", "SessionEnd")}
    # Not PreToolUse: a hook of that which fails forbids the call.
    | {"UserPromptSubmit": {"timeout": 5}, "PostToolUse": {"timeout": 1}},
    hooks="hooks/signet-sync.json",
    matchers={"PostToolUse": "Bash|Write|Edit"},
    servers=servers_in(
        FACTS.own, "mcp-config.json", lambda words: {"type": "local", "tools": ["*"], **program_and_arguments(words)}
    ),
)
