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
    | {"UserPromptSubmit": {"timeout": 5}},
    hooks="settings.json",
    servers=servers_in(_folder, "settings.json"),
)
