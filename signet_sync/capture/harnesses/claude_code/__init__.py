"""Claude Code: command hooks, and a JSON Lines file for each session."""

from __future__ import annotations

import os

from signet_sync.host.harness_settings.facts import Environ, JsonFacts, Payload, home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

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
    instructions = ("CLAUDE.md",)
    first_prompt = ("claude",)
    memory_beside = ("memory/*.md",)
    hooks = "settings.json"
    events = (
        ("SessionStart", 10, ""),
        ("UserPromptSubmit", 5, ""),  # the person waits, for what memory holds on it
        ("PreToolUse", 1, "Edit|Write|Bash"),
        ("PostToolUseFailure", 1, "Bash"),
        ("PostCompact", 10, ""),
        ("Stop", 10, ""),  # not `async`: Claude Code would wait for it at its end, and be late
        ("SessionEnd", 10, ""),  # without a time of its own it would be killed after 1.5 seconds
    )
    servers = ".claude.json"

    def homes(self, environ: Environ) -> tuple[str, ...]:
        if named := folders(environ):
            return tuple(named)
        more = environ.get("XDG_CONFIG_HOME") or os.path.join(home(environ), ".config")
        return folder(environ), os.path.join(more, "claude")  # some versions took this one

    def server_file(self, environ: Environ) -> str:
        """Returns the list for all projects: beside the settings folder, unless a variable names that folder.

        Claude Code has its own data in the same file, and writes it while it runs.
        """
        older = os.path.join(folder(environ), ".config.json")
        newer = os.path.join(next(iter(folders(environ)), home(environ)), self.servers)
        return older if os.path.exists(older) else newer

    def server_entry(self, words: Sequence[str]) -> dict[str, Any]:
        return {"type": "stdio", **super().server_entry(words)}

    def is_attended(self, payload: Payload, environ: Environ) -> bool:
        return environ.get("CLAUDE_CODE_ENTRYPOINT") in _ATTENDED


FACTS = _ClaudeCode()
