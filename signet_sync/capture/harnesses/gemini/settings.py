"""What we write into Gemini CLI's settings."""

from __future__ import annotations

import os

from signet_sync.capture.harnesses.gemini import FACTS
from signet_sync.host.harness_settings.harness import NAME, Environ, Harness, ServerList, program_and_arguments


def _folder(environ: Environ) -> str:
    return FACTS.homes(environ)[0]


# In milliseconds. PreCompress fires on every turn, compressed or not, and no event follows it: it is of no use.
SETTINGS = Harness(
    "gemini",
    _folder,
    {
        "SessionStart": {"name": NAME, "timeout": 10_000},
        "BeforeAgent": {"name": NAME, "timeout": 5_000},
        "AfterAgent": {"name": NAME, "timeout": 10_000},
        "SessionEnd": {"name": NAME, "timeout": 10_000},
    },
    hooks="settings.json",
    servers=ServerList(
        lambda environ: os.path.join(_folder(environ), "settings.json"),
        lambda data: ("mcpServers",),
        program_and_arguments,
    ),
)
