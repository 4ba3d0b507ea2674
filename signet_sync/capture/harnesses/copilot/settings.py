"""What we write into GitHub Copilot CLI's settings."""

from __future__ import annotations

import os

from signet_sync.capture.harnesses.copilot import FACTS
from signet_sync.host.harness_settings.harness import Environ, Harness, ServerList, program_and_arguments


def _folder(environ: Environ) -> str:
    return FACTS.homes(environ)[0]


# In seconds. It reads every file of this folder, and gives documents with Claude Code's names to events that have them.
SETTINGS = Harness(
    "copilot",
    _folder,
    {
        "SessionStart": {"timeout": 10},
        "UserPromptSubmit": {"timeout": 5},
        "Stop": {"timeout": 10},
        "SessionEnd": {"timeout": 10},
    },
    hooks="hooks/signet-sync.json",
    servers=ServerList(
        lambda environ: os.path.join(_folder(environ), "mcp-config.json"),
        lambda data: ("mcpServers",),
        lambda words: {"type": "local", "tools": ["*"], **program_and_arguments(words)},
    ),
)
