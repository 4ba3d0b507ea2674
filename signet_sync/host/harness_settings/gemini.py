"""Edits Gemini CLI's hook groups and MCP servers in `~/.gemini/settings.json`; times in milliseconds."""

from __future__ import annotations

import os
from collections.abc import Mapping

from signet_sync.host.folders import home
from signet_sync.host.harness_settings import document, hook_file, hook_groups, mcp_server, mcp_server_json
from signet_sync.host.harness_settings.condition import Condition, HarnessProblem, SettingsPlan
from signet_sync.host.harness_settings.hook_groups import Group
from signet_sync.host.harness_settings.mcp_server import Access
from signet_sync.host.harness_settings.mcp_server_json import ServerShape
from signet_sync.host.harness_settings.program import Program

NAME = "gemini"
_LABEL = "signet-sync"
_SHAPE = ServerShape(("mcpServers",), mcp_server_json.split)


def folder(environ: Mapping[str, str]) -> str:
    """Returns the folder of the user's settings."""
    return os.path.join(home(environ), ".gemini")


def install(
    program: Program, environ: Mapping[str, str], *, trust: bool = False, access: Access | None = None
) -> SettingsPlan:
    """Plans to add our groups to the settings; hooks in a user's own settings need no trust. Raises `ConfigError`."""
    del trust
    path = hooks_path(environ)
    text = document.load(path)
    hooked = hook_groups.merged(text, _wanted(program), path)
    after = mcp_server_json.merged(hooked, _SHAPE, program, access, path=path, search=environ.get("PATH"))
    return SettingsPlan((document.edit(path, text, after),))


def uninstall(environ: Mapping[str, str]) -> SettingsPlan:
    """Plans to remove our groups and our server from the settings. Raises `ConfigError`."""
    path = hooks_path(environ)
    text = document.load(path)
    rest = None if text is None else hook_groups.stripped(text, path)
    after = None if rest is None else mcp_server_json.stripped(rest, _SHAPE, path)
    return SettingsPlan((document.edit(path, text, after),))


def condition(program: Program, environ: Mapping[str, str]) -> Condition:
    """Reports which events call us, and which problems prevent it."""
    path = hooks_path(environ)
    data, ours, problems = hook_file.read(path)
    wrong = (*problems, *_silenced(data, path))
    condition = hook_file.condition(NAME, folder(environ), path, ours, _wanted(program), program, problems=wrong)
    registered, _ = mcp_server_json.found(data, _SHAPE, path)
    server_problems = _switched_off(data, path) if registered else []
    return mcp_server.with_server(condition, registered, program, environ.get("PATH"), server_problems)


def hooks_path(environ: Mapping[str, str]) -> str:
    """Returns the file of the user's hooks."""
    return os.path.join(folder(environ), "settings.json")


def servers(environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Returns the file of MCP servers, and the members that lead to them."""
    return hooks_path(environ), _SHAPE.way


def _wanted(program: Program) -> dict[str, Group]:
    handler = {"type": "command", "name": _LABEL, "command": program.command(NAME)}
    # At BeforeAgent the person waits: it prints what memory holds on the prompt.
    times = {"SessionStart": 10_000, "BeforeAgent": 5_000, "AfterAgent": 10_000, "SessionEnd": 10_000}
    # PreCompress fires on every turn, compressed or not, and no event follows it: it is of no use.
    return {event: {"hooks": [{**handler, "timeout": time}]} for event, time in times.items()}


def _silenced(data: object, path: str) -> list[HarnessProblem]:
    """Finds switches that disable hooks, which newer versions keep in `hooksConfig`, older ones beside the events."""
    found = []
    settings = data if isinstance(data, dict) else {}
    for key in ("hooksConfig", "hooks"):
        switches = settings.get(key)
        if not isinstance(switches, dict):
            continue
        if switches.get("enabled") is False:
            found.append(
                HarnessProblem("hooks-disabled", f'"{key}.enabled" in {path} keeps all hooks from running', "unset it")
            )
        disabled = switches.get("disabled")
        if isinstance(disabled, list) and _LABEL in disabled:
            found.append(
                HarnessProblem(
                    "hooks-disabled", f'"{key}.disabled" in {path} names {_LABEL}', "/hooks enable signet-sync"
                )
            )
    return found


def _switched_off(data: object, path: str) -> list[HarnessProblem]:
    rules = data.get("mcp") if isinstance(data, dict) else None
    allowed, excluded = (rules.get(key) if isinstance(rules, dict) else None for key in ("allowed", "excluded"))
    found = []
    if isinstance(allowed, list) and mcp_server.NAME not in allowed:
        found.append(mcp_server.switched_off(f'"mcp.allowed" in {path}, which does not name it,'))
    if isinstance(excluded, list) and mcp_server.NAME in excluded:
        found.append(mcp_server.switched_off(f'"mcp.excluded" in {path}'))
    return found
