"""Lists the harnesses: where each has its hooks and MCP servers, and what we write there."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from signet_sync.errors import SignetSyncError
from signet_sync.host.folders import home
from signet_sync.host.harness_settings import files
from signet_sync.host.harness_settings.harness import NAME, Environ, Flags, Harness, ServerList
from signet_sync.host.harness_settings.program import Program

# Codex passes hardly any of its environment to a server, which would otherwise use other paths than a hook.
_PASSED = ("SIGNET_CONFIG", "SIGNET_DB", "SIGNET_STATE", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
_CODEX_ASKS = "Codex asks you once, at its next start, whether these hooks may run; until then codex exec omits them"
_ENABLE = "openclaw hooks enable signet-sync  (then restart the gateway)"


def _split(words: Sequence[str]) -> dict[str, Any]:
    """Returns the entry for harnesses that separate a program from its arguments."""
    return {"command": words[0], "args": list(words[1:])}


def _claude_folder(environ: Environ) -> str:
    return environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home(environ), ".claude")


def _claude_servers(environ: Environ) -> str:
    """Returns the list of servers for all projects: beside the settings folder, unless a variable names that folder.

    Claude Code has its own data in the same file, and writes it while it runs.
    """
    older = os.path.join(_claude_folder(environ), ".config.json")
    newer = os.path.join(environ.get("CLAUDE_CONFIG_DIR") or home(environ), ".claude.json")
    return older if os.path.exists(older) else newer


def _codex_folder(environ: Environ) -> str:
    """Returns Codex's folder as Codex names it: it resolves `CODEX_HOME`, but not the default path."""
    moved = environ.get("CODEX_HOME")
    return os.path.realpath(moved) if moved else os.path.join(home(environ), ".codex")


def _opencode_folder(environ: Environ) -> str:
    return os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home(environ), ".config"), "opencode")


def _opencode_way(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the newer way if the file has it already, else the one that every version reads."""
    servers = data.get("mcp")
    newer = servers.get("servers") if isinstance(servers, dict) else None
    return ("mcp", "servers") if isinstance(newer, dict) and "type" not in newer else ("mcp",)


def _openclaw_by_hand(program: Program, flags: Flags) -> tuple[str, ...]:
    """Returns the commands for a person: OpenClaw alone edits its settings, which are JSON5."""
    if flags is None:
        return (_ENABLE,)
    # One server serves all chats, groups included: MEMORY.md is available to all only with an explicit scope.
    words = [*program.start, "mcp", *flags, *(() if "--scope" in flags else ("--scope", "shared"))]
    command = shlex.join(["openclaw", "mcp", "set", NAME, json.dumps(_split(words), ensure_ascii=False)])
    return _ENABLE, f"{command}  (the MCP server; OpenClaw alone edits the list of them)"


def _openclaw_left(environ: Environ) -> tuple[str, ...]:
    """Names our server if its words are anywhere in the settings; the words of the hook do not count."""
    try:
        raw = files.read(os.path.join(home(environ), ".openclaw", "openclaw.json")) or b""
    except (SignetSyncError, OSError):
        return ()
    return (f"openclaw mcp unset {NAME}",) if b"signet_sync" in raw else ()


def _bare(*events: str) -> dict[str, dict[str, Any]]:
    return {event: {} for event in events}


_ALL = (
    # In seconds; at a prompt the person waits, for what memory holds on it.
    Harness(
        "claude-code",
        _claude_folder,
        {
            "SessionStart": {"timeout": 10},
            "UserPromptSubmit": {"timeout": 5},
            "PreCompact": {"timeout": 5},
            "PostCompact": {"timeout": 10},
            "Stop": {"timeout": 10},  # not `async`: Claude Code would wait for it at its end, and be late
            "SessionEnd": {"timeout": 10},  # without a time of its own it would be killed after 1.5 seconds
        },
        hooks="settings.json",
        servers=ServerList(
            _claude_servers, lambda data: ("mcpServers",), lambda words: {"type": "stdio", **_split(words)}
        ),
    ),
    Harness(
        "codex",
        _codex_folder,
        {
            "SessionStart": {"timeout": 10},
            "UserPromptSubmit": {"timeout": 5},
            "PostCompact": {"timeout": 10},
            "Stop": {"timeout": 10},
            # Codex cuts a longer time to three seconds and prints a warning at every start.
            "SessionEnd": {"timeout": 3},
        },
        hooks="hooks.json",
        servers=ServerList(
            lambda environ: os.path.join(_codex_folder(environ), "config.toml"),
            lambda data: ("mcp_servers",),
            _split,
            lambda environ: {"env_vars": passed} if (passed := [each for each in _PASSED if environ.get(each)]) else {},
        ),
        asks=_CODEX_ASKS,
    ),
    # In milliseconds. PreCompress fires on every turn, compressed or not, and no event follows it: it is of no use.
    Harness(
        "gemini",
        lambda environ: os.path.join(home(environ), ".gemini"),
        {
            "SessionStart": {"name": NAME, "timeout": 10_000},
            "BeforeAgent": {"name": NAME, "timeout": 5_000},
            "AfterAgent": {"name": NAME, "timeout": 10_000},
            "SessionEnd": {"name": NAME, "timeout": 10_000},
        },
        hooks="settings.json",
        servers=ServerList(
            lambda environ: os.path.join(home(environ), ".gemini/settings.json"),
            lambda data: ("mcpServers",),
            _split,
        ),
    ),
    # A plug-in is loaded from its folder. `opencode.json` is read whether or not `opencode.jsonc` is beside it.
    Harness(
        "opencode",
        _opencode_folder,
        _bare("session.created", "session.idle", "session.compacted", "dispose", "experimental.chat.system.transform"),
        scripts={"plugins/signet-sync.js": "opencode.js"},
        servers=ServerList(
            lambda environ: os.path.join(_opencode_folder(environ), "opencode.json"),
            _opencode_way,
            lambda words: {"type": "local", "command": list(words)},
        ),
    ),
    Harness(
        "openclaw",
        lambda environ: os.path.join(home(environ), ".openclaw"),
        _bare("agent:bootstrap", "command:new", "command:reset", "session:auto-reset", "session:compact:after"),
        scripts={"hooks/signet-sync/handler.js": "openclaw.js", "hooks/signet-sync/HOOK.md": "openclaw.md"},
        by_hand=_openclaw_by_hand,
        left=_openclaw_left,
    ),
)
HARNESSES: Mapping[str, Harness] = {harness.name: harness for harness in _ALL}
