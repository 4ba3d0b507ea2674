"""What we write into Gemini CLI's settings."""

from __future__ import annotations

from signet_sync.capture.harnesses.gemini import FACTS
from signet_sync.host.harness_settings.harness import NAME, Harness, servers_in

# In milliseconds. PreCompress fires on every turn, compressed or not, and no event follows it: it is of no use.
SETTINGS = Harness(
    "gemini",
    FACTS.own,
    {
        "SessionStart": {"name": NAME, "timeout": 10_000},
        "BeforeAgent": {"name": NAME, "timeout": 5_000},
        "AfterTool": {"name": NAME, "timeout": 1_000},
        "AfterAgent": {"name": NAME, "timeout": 10_000},
        "SessionEnd": {"name": NAME, "timeout": 10_000},
    },
    hooks="settings.json",
    matchers={"AfterTool": "run_shell_command|write_file|replace"},
    servers=servers_in(FACTS.own, "settings.json"),
)
