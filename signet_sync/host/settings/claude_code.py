"""Claude Code: hook groups in `settings.json` of `$CLAUDE_CONFIG_DIR`, else of `~/.claude`; times in seconds."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from signet_sync.host.settings import hook_file
from signet_sync.host.settings.condition import Condition, Plan, Problem
from signet_sync.host.settings.groups import Group
from signet_sync.host.settings.places import home
from signet_sync.host.settings.program import Program
from signet_sync.whereabouts import read_json

NAME = "claude-code"

# An administrator's settings rule over the person's.
MANAGED = (
    "/Library/Application Support/ClaudeCode/managed-settings.json"
    if sys.platform == "darwin"
    else "/etc/claude-code/managed-settings.json"
)


def folder(environ: Mapping[str, str]) -> str:
    """Where the person's settings are."""
    return environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home(environ), ".claude")


def install(program: Program, environ: Mapping[str, str], *, trust: bool = False) -> Plan:
    """Our groups into the settings; Claude Code asks for no trust. Raises `ConfigError`."""
    del trust
    return Plan((hook_file.merging(_path(environ), _wanted(program)),))


def uninstall(environ: Mapping[str, str]) -> Plan:
    """Our groups out of the settings. Raises `ConfigError`."""
    return Plan((hook_file.stripping(_path(environ)),))


def look(program: Program, environ: Mapping[str, str]) -> Condition:
    """Which events call us, and what keeps them from it."""
    path = _path(environ)
    data, ours, problems = hook_file.look(path)
    return hook_file.condition(
        NAME,
        path,
        found=os.path.isdir(folder(environ)),
        ours=ours,
        wanted=_wanted(program),
        program=program,
        problems=(*problems, *_silenced(data, path), *_silenced(_managed(), MANAGED)),
    )


def _path(environ: Mapping[str, str]) -> str:
    return os.path.join(folder(environ), "settings.json")


def _wanted(program: Program) -> dict[str, Group]:
    handler = {"type": "command", "command": program.command(NAME), "timeout": 10}
    return {
        "SessionStart": {"hooks": [handler]},
        "UserPromptSubmit": {"hooks": [handler]},
        "PostCompact": {"hooks": [handler]},
        "Stop": {"hooks": [{**handler, "async": True}]},
        # Without a time of its own this one would be killed after a second and a half.
        "SessionEnd": {"hooks": [handler]},
    }


def _managed() -> object:
    return read_json(MANAGED) or {}


def _silenced(data: object, path: str) -> Sequence[Problem]:
    settings = data if isinstance(data, dict) else {}
    named = [key for key in ("disableAllHooks", "allowManagedHooksOnly") if settings.get(key) is True]
    return [
        Problem("hooks-disabled", f'"{key}" in {path} keeps all hooks from running', f"unset {key}") for key in named
    ]
