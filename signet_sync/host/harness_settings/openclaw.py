"""Installs our hook in OpenClaw: a folder of two files below `~/.openclaw/hooks`, which a person has to enable.

Its MCP servers are in a file with comments, which only its own command edits: that is left to the person.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace

from signet_sync.errors import SignetSyncError
from signet_sync.host.folders import home
from signet_sync.host.harness_settings import files, mcp_server, mcp_server_json, script_file
from signet_sync.host.harness_settings.condition import Condition, SettingsPlan
from signet_sync.host.harness_settings.mcp_server import Access
from signet_sync.host.harness_settings.program import Program

NAME = "openclaw"
_EVENTS = ("agent:bootstrap", "command:new", "command:reset", "session:auto-reset", "session:compact:after")
_SCRIPT, _ABOUT = "openclaw.js", "openclaw.md"
_ENABLE = "openclaw hooks enable signet-sync  (then restart the gateway)"


def folder(environ: Mapping[str, str]) -> str:
    """Returns OpenClaw's folder."""
    return os.path.join(home(environ), ".openclaw")


def install(
    program: Program, environ: Mapping[str, str], *, trust: bool = False, access: Access | None = None
) -> SettingsPlan:
    """Plans to write both files of our hook. Raises `ConfigError` if other files have these names."""
    del trust
    edits = tuple(script_file.writing(path, text) for path, text in _files(program, environ).items())
    return SettingsPlan(edits, by_hand=(_ENABLE, *_registering(program, access)))


def uninstall(environ: Mapping[str, str]) -> SettingsPlan:
    """Plans to remove both files of our hook."""
    left = f"openclaw mcp unset {mcp_server.NAME}"
    return SettingsPlan(
        tuple(script_file.removing(path) for path in _paths(environ)),
        by_hand=(left,) if _may_be_registered(environ) else (),
    )


def condition(program: Program, environ: Mapping[str, str]) -> Condition:
    """Reports whether our hook exists and calls this installation; only OpenClaw knows whether it is enabled."""
    where = folder(environ)
    return script_file.condition(NAME, where, _paths(environ)[1], _files(program, environ), _EVENTS, program, "hook")


def _paths(environ: Mapping[str, str]) -> tuple[str, str]:
    where = os.path.join(folder(environ), "hooks", "signet-sync")
    return os.path.join(where, "HOOK.md"), os.path.join(where, "handler.js")


def _files(program: Program, environ: Mapping[str, str]) -> dict[str, str]:
    about, handler = _paths(environ)
    return {about: script_file.template(_ABOUT), handler: script_file.script(_SCRIPT, program)}


def _registering(program: Program, access: Access | None) -> list[str]:
    if access is None:
        return []
    # One server serves all chats, groups included: MEMORY.md is available to all only with an explicit scope.
    access = replace(access, scope=access.scope or "shared")
    entry = json.dumps(mcp_server_json.split(program.server(access.flags)), ensure_ascii=False)
    note = f"(the MCP server, scope {access.scope}; OpenClaw alone edits the list of them)"
    return [f"{shlex.join(['openclaw', 'mcp', 'set', mcp_server.NAME, entry])}  {note}"]


def _may_be_registered(environ: Mapping[str, str]) -> bool:
    """Returns whether the words of our server are anywhere in its settings; the words of the hook do not count."""
    try:
        return b"signet_sync" in (files.read(os.path.join(folder(environ), "openclaw.json")) or b"")
    except (SignetSyncError, OSError):
        return False
