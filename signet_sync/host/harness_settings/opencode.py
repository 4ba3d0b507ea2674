"""Installs our plug-in in OpenCode: a file in `opencode/plugins` of the user's settings, loaded automatically.

Its MCP servers are in `opencode.json`, which is read whether or not there is an `opencode.jsonc` beside it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from signet_sync.errors import SignetSyncError
from signet_sync.host.folders import home
from signet_sync.host.harness_settings import document, json_text, mcp_server, mcp_server_json, script_file
from signet_sync.host.harness_settings.condition import Condition, SettingsPlan
from signet_sync.host.harness_settings.mcp_server import Access
from signet_sync.host.harness_settings.mcp_server_json import ServerShape
from signet_sync.host.harness_settings.program import Program

NAME = "opencode"
_EVENTS = ("session.created", "session.idle", "session.compacted", "dispose", "experimental.chat.system.transform")
_SCRIPT = "opencode.js"


def _entry(words: Sequence[str]) -> dict[str, object]:
    return {"type": "local", "command": list(words)}


_OLDER = ServerShape(("mcp",), _entry, (("enabled", True),))
_NEWER = ServerShape(("mcp", "servers"), _entry)


def folder(environ: Mapping[str, str]) -> str:
    """Returns the folder of the user's settings."""
    return os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home(environ), ".config"), "opencode")


def install(
    program: Program, environ: Mapping[str, str], *, trust: bool = False, access: Access | None = None
) -> SettingsPlan:
    """Plans to write our plug-in. Raises `ConfigError` if another file has its name."""
    del trust
    plugin = script_file.writing(_path(environ), script_file.script(_SCRIPT, program))
    path = _servers(environ)
    return SettingsPlan(
        (plugin, *mcp_server_json.registering(path, _shape(path), program, access, environ.get("PATH")))
    )


def uninstall(environ: Mapping[str, str]) -> SettingsPlan:
    """Plans to remove our plug-in, and our server from the list. Raises `ConfigError`."""
    path = _servers(environ)
    return SettingsPlan((script_file.removing(_path(environ)), *mcp_server_json.unregistering(path, _shape(path))))


def condition(program: Program, environ: Mapping[str, str]) -> Condition:
    """Reports whether our plug-in and our server exist and call this installation."""
    path = _servers(environ)
    shape = _shape(path)
    registered, entry, server_problems = mcp_server_json.read(path, shape)
    if entry.get("enabled") is False or entry.get("disabled") is True:
        server_problems = [
            *server_problems,
            mcp_server.switched_off(f'"{".".join((*shape.way, mcp_server.NAME))}" in {path}'),
        ]
    wanted = {_path(environ): script_file.script(_SCRIPT, program)}
    plugged = script_file.condition(NAME, folder(environ), _path(environ), wanted, _EVENTS, program, "plug-in")
    return mcp_server.with_server(plugged, registered, program, environ.get("PATH"), server_problems)


def _path(environ: Mapping[str, str]) -> str:
    return os.path.join(folder(environ), "plugins", "signet-sync.js")


def servers(environ: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Returns the file of MCP servers, and the members that lead to them."""
    path = _servers(environ)
    return path, _shape(path).way


def _servers(environ: Mapping[str, str]) -> str:
    return os.path.join(folder(environ), "opencode.json")


def _shape(path: str) -> ServerShape:
    """Returns the shape to use: the newer one if the file has it already, else the one that every version reads."""
    try:
        data = json_text.parse(document.load(path) or "{}")
    except (SignetSyncError, OSError, json_text.NotJson):
        return _OLDER
    servers = data.get("mcp") if isinstance(data, dict) else None
    newer = servers.get("servers") if isinstance(servers, dict) else None
    return _NEWER if isinstance(newer, dict) and "type" not in newer else _OLDER
