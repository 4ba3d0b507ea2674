"""Edits Codex's hook groups, in `hooks.json` of `$CODEX_HOME` or `~/.codex`; times in seconds; hooks need trust.

Trust and MCP servers are in `config.toml`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from signet_sync.errors import ConfigError
from signet_sync.host.folders import home
from signet_sync.host.harness_settings import (
    codex_trust,
    document,
    hook_file,
    hook_groups,
    json_text,
    mcp_server,
    mcp_server_json,
    mcp_server_toml,
    toml_text,
)
from signet_sync.host.harness_settings.condition import Condition, Edit, HarnessProblem, Server, SettingsPlan
from signet_sync.host.harness_settings.hook_groups import Group, HandlerPlace
from signet_sync.host.harness_settings.mcp_server import Access
from signet_sync.host.harness_settings.program import Program

NAME = "codex"
# Codex passes hardly any of its environment to a server, which would otherwise use other paths than a hook.
_HANDED_ON = ("SIGNET_CONFIG", "SIGNET_DB", "SIGNET_STATE", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
_LEFT_OUT = "Codex leaves the hooks out, without a word, until they are trusted"


def folder(environ: Mapping[str, str]) -> str:
    """Returns Codex's folder as Codex names it: it resolves `CODEX_HOME`, but not the default path."""
    moved = environ.get("CODEX_HOME")
    return os.path.realpath(moved) if moved else os.path.join(home(environ), ".codex")


def install(
    program: Program, environ: Mapping[str, str], *, trust: bool = False, access: Access | None = None
) -> SettingsPlan:
    """Plans to add our groups to `hooks.json`; with `trust` also what Codex writes when a person trusts them.

    Raises `ConfigError`.
    """
    hooks = hook_file.merging(hooks_path(environ), _wanted(program))
    assert hooks.after is not None
    ours = hook_groups.places(json_text.parse(hooks.after.decode()))
    states = codex_trust.wanted(hooks_path(environ), ours)
    path = _config(environ)
    config = document.load(path)
    after = codex_trust.written(config, states, path) if trust else config
    passed = [name for name in _HANDED_ON if environ.get(name)]
    after = mcp_server_toml.merged(after, program, access, passed=passed, path=path, search=environ.get("PATH"))
    edits = (hooks, document.edit(path, config, after)) if trust or access or after != config else (hooks,)
    if not trust:
        return SettingsPlan(edits, by_hand=() if _settled(environ, states) else (f"{_LEFT_OUT}: {_ask(program)}",))
    trusted = [
        f"{place.event}: {place.own['command']} ({hash_})" for place, hash_ in zip(ours, states.values(), strict=True)
    ]
    return SettingsPlan(edits, trusted=tuple(trusted))


def uninstall(environ: Mapping[str, str]) -> SettingsPlan:
    """Plans to remove our groups from `hooks.json`, and their trust and our server from `config.toml`.

    Raises `ConfigError`.
    """
    path = hooks_path(environ)
    hooks = hook_file.stripping(path)
    data, ours, _ = hook_file.read(path)
    config = document.load(_config(environ))
    edits = [hooks]
    if config is not None:
        # Trust first: if it was written after the server, it owns the line end between them.
        rest = codex_trust.without(config, codex_trust.wanted(path, ours).keys(), _config(environ))
        edits.append(_taken_out(environ, config, mcp_server_toml.without(rest, _config(environ))))
    moved = _events_with_hooks_behind(data, ours)
    if not moved:
        return SettingsPlan(tuple(edits))
    behind = ", ".join(moved)
    message = f"Codex knows hooks by their position and will ask again for those that came after ours: {behind}"
    return SettingsPlan(tuple(edits), by_hand=(message,))


def condition(program: Program, environ: Mapping[str, str]) -> Condition:
    """Reports which events call us, whether Codex trusts them, and which problems prevent them."""
    path = hooks_path(environ)
    _, ours, problems = hook_file.read(path)
    wrong = list(problems)
    of_server: list[HarnessProblem] = []
    trusted = registered = None
    try:
        config = _config_data(environ)
    except ConfigError as error:
        wrong.append(HarnessProblem("settings-unparsable", f"{error.path}: {error.message}", "correct this"))
    except OSError as error:
        wrong.append(
            HarnessProblem("settings-unparsable", f"{error.filename}: {error.strerror}", "check its permissions")
        )
    else:
        trusted = codex_trust.all_trusted(config, codex_trust.wanted(path, ours)) if ours else None
        wrong += _silenced(config, _config(environ), bool(ours))
        if trusted is False:
            wrong.append(HarnessProblem("untrusted", _LEFT_OUT, _ask(program)))
        registered, of_server = _server(config, _config(environ))
    condition = hook_file.condition(
        NAME, folder(environ), path, ours, _wanted(program), program, problems=wrong, trusted=trusted
    )
    return mcp_server.with_server(condition, registered, program, environ.get("PATH"), of_server)


def _ask(program: Program) -> str:
    return f"run /hooks inside Codex and trust them, or let this do it: {program.again(NAME, '--trust')}"


def hooks_path(environ: Mapping[str, str]) -> str:
    """Returns the file of the user's hooks."""
    return os.path.join(folder(environ), "hooks.json")


def servers(environ: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Returns the file of MCP servers, and the servers in it; none if it cannot be read."""
    found = _config_data(environ).get("mcp_servers")
    return _config(environ), found if isinstance(found, dict) else {}


def _config(environ: Mapping[str, str]) -> str:
    return os.path.join(folder(environ), "config.toml")


def _wanted(program: Program) -> dict[str, Group]:
    handler = {"type": "command", "command": program.command(NAME), "timeout": 10}
    return {
        "SessionStart": {"hooks": [handler]},
        # The person waits for it: it prints what memory holds on the prompt.
        "UserPromptSubmit": {"hooks": [{**handler, "timeout": 5}]},
        "PostCompact": {"hooks": [handler]},
        "Stop": {"hooks": [handler]},
        # Codex cuts a longer time to three seconds and prints a warning at every start.
        "SessionEnd": {"hooks": [{**handler, "timeout": 3}]},
    }


def _config_data(environ: Mapping[str, str]) -> dict[str, Any]:
    return toml_text.parsed(document.load(_config(environ)) or "", _config(environ))


def _settled(environ: Mapping[str, str], states: Mapping[str, str]) -> bool:
    try:
        return codex_trust.all_trusted(_config_data(environ), states)
    except (ConfigError, OSError):
        return False


def _taken_out(environ: Mapping[str, str], before: str, after: str) -> Edit:
    # The file contained only our tables; one that existed before us, and was empty, begins with our line feed.
    made_by_us = not after and before[:1] == "["
    return document.edit(_config(environ), before, None if made_by_us else after)


def _server(config: Mapping[str, Any], path: str) -> tuple[Server | None, list[HarnessProblem]]:
    entry = mcp_server_toml.entry(config)
    words = mcp_server_json.words_of(entry)
    if not mcp_server.is_ours(words):
        return None, []
    off = [mcp_server.switched_off(f"enabled = false in {path}")] if entry.get("enabled") is False else []
    return Server(path, tuple(words)), off


def _silenced(config: Mapping[str, Any], path: str, installed: bool) -> list[HarnessProblem]:
    found = []
    features = config.get("features")
    if isinstance(features, dict) and features.get("hooks") is False:
        found.append(
            HarnessProblem(
                "hooks-disabled", f"features.hooks = false in {path} keeps all hooks from running", "unset it"
            )
        )
    hooks = config.get("hooks")
    if installed and isinstance(hooks, dict) and set(hooks) - {"state"}:
        found.append(
            HarnessProblem(
                "two-places", f"there are hooks in {path} as well; Codex warns of that at every start", "keep one"
            )
        )
    return found


def _events_with_hooks_behind(data: object, ours: Sequence[HandlerPlace]) -> list[str]:
    hooks = data.get("hooks", {}) if isinstance(data, dict) else {}
    return [place.event for place in ours if place.group + 1 < len(hooks[place.event])]
