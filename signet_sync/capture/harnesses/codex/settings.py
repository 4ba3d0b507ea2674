"""What we write into Codex's settings."""

from __future__ import annotations

import os

from signet_sync.capture.harnesses.codex import FACTS
from signet_sync.host.harness_settings.harness import Environ, Harness, ServerList, program_and_arguments

# Codex passes hardly any of its environment to a server, which would otherwise use other paths than a hook.
_PASSED = ("SIGNET_CONFIG", "SIGNET_DB", "SIGNET_STATE", "XDG_CONFIG_HOME", "XDG_STATE_HOME")


def _folder(environ: Environ) -> str:
    """Returns Codex's folder as Codex names it: it resolves `CODEX_HOME`, but not the default path."""
    place = FACTS.own(environ)
    return os.path.realpath(place) if environ.get("CODEX_HOME") else place


SETTINGS = Harness(
    "codex",
    _folder,
    {
        "SessionStart": {"timeout": 10},
        "UserPromptSubmit": {"timeout": 5},
        "PreToolUse": {"timeout": 1},  # what comes after a tool does not say whether it failed
        "PostCompact": {"timeout": 10},
        "Stop": {"timeout": 10},
        # Codex cuts a longer time to three seconds and prints a warning at every start.
        "SessionEnd": {"timeout": 3},
    },
    hooks="hooks.json",
    matchers={"PreToolUse": "Bash|apply_patch"},
    servers=ServerList(
        lambda environ: os.path.join(_folder(environ), "config.toml"),
        lambda data: ("mcp_servers",),
        program_and_arguments,
        lambda environ: {"env_vars": passed} if (passed := [each for each in _PASSED if environ.get(each)]) else {},
    ),
    asks="Codex asks you once, at its next start, whether these hooks may run; until then codex exec omits them",
)
