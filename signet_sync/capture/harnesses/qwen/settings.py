"""What we write into Qwen Code's settings."""

from __future__ import annotations

from signet_sync.capture.harnesses.qwen import FACTS
from signet_sync.host.harness_settings.harness import Environ, Harness, servers_in


def _folder(environ: Environ) -> str:
    return FACTS.homes(environ)[-1]


# In seconds.
SETTINGS = Harness(
    "qwen",
    _folder,
    {event: {"timeout": 10} for event in ("SessionStart", "PostCompact", "Stop", "SessionEnd")}
    # Not PreToolUse: its text never reaches the model.
    | {"UserPromptSubmit": {"timeout": 5}, "PostToolUse": {"timeout": 1}, "PostToolUseFailure": {"timeout": 1}},
    hooks="settings.json",
    matchers={"PostToolUse": "run_shell_command|write_file|edit", "PostToolUseFailure": "run_shell_command"},
    servers=servers_in(_folder, "settings.json"),
)
