"""What we write into Claude Code's settings."""

from __future__ import annotations

import os

from signet_sync.capture.harnesses.claude_code import folder, folders
from signet_sync.host.folders import home
from signet_sync.host.harness_settings.harness import Environ, Harness, ServerList, program_and_arguments


def _servers(environ: Environ) -> str:
    """Returns the list of servers for all projects: beside the settings folder, unless a variable names that folder.

    Claude Code has its own data in the same file, and writes it while it runs.
    """
    older = os.path.join(folder(environ), ".config.json")
    newer = os.path.join(next(iter(folders(environ)), home(environ)), ".claude.json")
    return older if os.path.exists(older) else newer


# In seconds; at a prompt the person waits, for what memory holds on it.
SETTINGS = Harness(
    "claude-code",
    folder,
    {
        "SessionStart": {"timeout": 10},
        "UserPromptSubmit": {"timeout": 5},
        "PreToolUse": {"timeout": 1},
        "PostToolUseFailure": {"timeout": 1},
        "PreCompact": {"timeout": 5},
        "PostCompact": {"timeout": 10},
        "Stop": {"timeout": 10},  # not `async`: Claude Code would wait for it at its end, and be late
        "SessionEnd": {"timeout": 10},  # without a time of its own it would be killed after 1.5 seconds
    },
    hooks="settings.json",
    matchers={"PreToolUse": "Edit|Write|Bash", "PostToolUseFailure": "Bash"},
    servers=ServerList(
        _servers, lambda data: ("mcpServers",), lambda words: {"type": "stdio", **program_and_arguments(words)}
    ),
)
