"""Claude Code: command hooks, and a JSON Lines file for each session."""

from __future__ import annotations

import os

from signet_sync.capture.harnesses.facts import Environ, JsonFacts, Payload
from signet_sync.host.folders import home

# What it calls itself where a person sits before it; `sdk-cli` is `claude -p`.
_ATTENDED = frozenset(("cli", "claude-vscode", "claude-jetbrains", "claude-desktop"))


def folders(environ: Environ) -> list[str]:
    """Returns the folders of settings and transcripts that a variable names, separated by commas."""
    return [one for one in map(str.strip, environ.get("CLAUDE_CONFIG_DIR", "").split(",")) if one]


def folder(environ: Environ) -> str:
    """Returns its own folder of settings and transcripts."""
    return next(iter(folders(environ)), os.path.join(home(environ), ".claude"))


class _ClaudeCode(JsonFacts):
    folders = ("projects",)
    pattern = r"projects/[^/]+/[^/]+\.jsonl"
    asks_in_compaction = True
    instructions = ("CLAUDE.md",)
    first_prompt = ("claude",)
    memory_beside = ("memory/*.md",)

    def homes(self, environ: Environ) -> tuple[str, ...]:
        if named := folders(environ):
            return tuple(named)
        more = environ.get("XDG_CONFIG_HOME") or os.path.join(home(environ), ".config")
        return folder(environ), os.path.join(more, "claude")  # some versions took this one

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        return environ.get("CLAUDE_CODE_ENTRYPOINT") in _ATTENDED


FACTS = _ClaudeCode()
