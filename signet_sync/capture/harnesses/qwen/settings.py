"""What we write into Qwen Code's settings."""

from __future__ import annotations

import os

from signet_sync.capture.harnesses.qwen import folder
from signet_sync.host.harness_settings.harness import Harness, ServerList, program_and_arguments

# In seconds.
SETTINGS = Harness(
    "qwen",
    folder,
    {
        "SessionStart": {"timeout": 10},
        "UserPromptSubmit": {"timeout": 5},
        "PostCompact": {"timeout": 10},
        "Stop": {"timeout": 10},
        "SessionEnd": {"timeout": 10},
    },
    hooks="settings.json",
    servers=ServerList(
        lambda environ: os.path.join(folder(environ), "settings.json"),
        lambda data: ("mcpServers",),
        program_and_arguments,
    ),
)
