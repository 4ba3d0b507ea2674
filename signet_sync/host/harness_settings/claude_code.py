"""Edits Claude Code's hook groups, in `settings.json` of `$CLAUDE_CONFIG_DIR` or `~/.claude`; times in seconds.

Its MCP servers are in another file, which Claude Code also uses for its own data and writes while it runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from signet_sync.host.folders import home
from signet_sync.host.harness_settings import hook_file, mcp_server, mcp_server_json
from signet_sync.host.harness_settings.condition import Condition, HarnessProblem, SettingsPlan
from signet_sync.host.harness_settings.hook_groups import Group
from signet_sync.host.harness_settings.mcp_server import Access
from signet_sync.host.harness_settings.mcp_server_json import ServerShape
from signet_sync.host.harness_settings.program import Program
from signet_sync.storage.locations import read_json

NAME = "claude-code"

# An administrator's settings override the user's.
MANAGED = (
    "/Library/Application Support/ClaudeCode/managed-settings.json"
    if sys.platform == "darwin"
    else "/etc/claude-code/managed-settings.json"
)

_SHAPE = ServerShape(("mcpServers",), lambda words: {"type": "stdio", **mcp_server_json.split(words)})


def folder(environ: Mapping[str, str]) -> str:
    """Returns the folder of the user's settings."""
    return environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home(environ), ".claude")


def install(
    program: Program, environ: Mapping[str, str], *, trust: bool = False, access: Access | None = None
) -> SettingsPlan:
    """Plans to add our groups to the settings; Claude Code asks for no trust. Raises `ConfigError`."""
    del trust
    hooks = hook_file.merging(hooks_path(environ), _wanted(program))
    servers = mcp_server_json.registering(_servers(environ), _SHAPE, program, access, environ.get("PATH"))
    return SettingsPlan((hooks, *servers))


def uninstall(environ: Mapping[str, str]) -> SettingsPlan:
    """Plans to remove our groups from the settings and our server from its list. Raises `ConfigError`."""
    hooks = hook_file.stripping(hooks_path(environ))
    return SettingsPlan((hooks, *mcp_server_json.unregistering(_servers(environ), _SHAPE)))


def condition(program: Program, environ: Mapping[str, str]) -> Condition:
    """Reports which events call us, and which problems prevent it."""
    path = hooks_path(environ)
    data, ours, problems = hook_file.read(path)
    wrong = (*problems, *_silenced(data, path), *_silenced(_managed(), MANAGED))
    condition = hook_file.condition(NAME, folder(environ), path, ours, _wanted(program), program, problems=wrong)
    registered, _, server_problems = mcp_server_json.read(_servers(environ), _SHAPE)
    return mcp_server.with_server(condition, registered, program, environ.get("PATH"), server_problems)


def hooks_path(environ: Mapping[str, str]) -> str:
    """Returns the file of the user's hooks."""
    return os.path.join(folder(environ), "settings.json")


def _servers(environ: Mapping[str, str]) -> str:
    """Returns the list of servers for all projects: beside the settings folder, unless a variable names that folder."""
    older = os.path.join(folder(environ), ".config.json")
    return (
        older
        if os.path.exists(older)
        else os.path.join(environ.get("CLAUDE_CONFIG_DIR") or home(environ), ".claude.json")
    )


def servers(environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Returns the file of MCP servers, and the members that lead to them."""
    return _servers(environ), _SHAPE.way


def _wanted(program: Program) -> dict[str, Group]:
    handler = {"type": "command", "command": program.command(NAME), "timeout": 10}
    return {
        "SessionStart": {"hooks": [handler]},
        # The person waits for it: it prints what memory holds on the prompt.
        "UserPromptSubmit": {"hooks": [{**handler, "timeout": 5}]},
        "PostCompact": {"hooks": [handler]},
        "Stop": {"hooks": [{**handler, "async": True}]},
        # Without a time of its own this hook would be killed after 1.5 seconds.
        "SessionEnd": {"hooks": [handler]},
    }


def _managed() -> object:
    return read_json(MANAGED) or {}


def _silenced(data: object, path: str) -> Sequence[HarnessProblem]:
    settings = data if isinstance(data, dict) else {}
    named = [key for key in ("disableAllHooks", "allowManagedHooksOnly") if settings.get(key) is True]
    return [
        HarnessProblem("hooks-disabled", f'"{key}" in {path} keeps all hooks from running', f"unset {key}")
        for key in named
    ]
