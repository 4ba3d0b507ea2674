"""Gemini CLI: hook groups in `~/.gemini/settings.json`; times in milliseconds."""

from __future__ import annotations

import os
from collections.abc import Mapping

from signet_sync.host.settings import hook_file
from signet_sync.host.settings.condition import Condition, Plan, Problem
from signet_sync.host.settings.groups import Group
from signet_sync.host.settings.places import home
from signet_sync.host.settings.program import Program

NAME = "gemini"
_LABEL = "signet-sync"


def folder(environ: Mapping[str, str]) -> str:
    """Where the person's settings are."""
    return os.path.join(home(environ), ".gemini")


def install(program: Program, environ: Mapping[str, str], *, trust: bool = False) -> Plan:
    """Our groups into the settings; hooks in a person's own settings need no trust. Raises `ConfigError`."""
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
        problems=(*problems, *_silenced(data, path)),
    )


def _path(environ: Mapping[str, str]) -> str:
    return os.path.join(folder(environ), "settings.json")


def _wanted(program: Program) -> dict[str, Group]:
    handler = {"type": "command", "name": _LABEL, "command": program.command(NAME), "timeout": 10_000}
    # PreCompress fires on every turn, compressed or not, and nothing fires afterwards: it tells nothing.
    return {event: {"hooks": [handler]} for event in ("SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd")}


def _silenced(data: object, path: str) -> list[Problem]:
    """Newer versions keep the switches in `hooksConfig`, older ones beside the events."""
    found = []
    settings = data if isinstance(data, dict) else {}
    for key in ("hooksConfig", "hooks"):
        switches = settings.get(key)
        if not isinstance(switches, dict):
            continue
        if switches.get("enabled") is False:
            found.append(
                Problem("hooks-disabled", f'"{key}.enabled" in {path} keeps all hooks from running', "unset it")
            )
        disabled = switches.get("disabled")
        if isinstance(disabled, list) and _LABEL in disabled:
            found.append(
                Problem("hooks-disabled", f'"{key}.disabled" in {path} names {_LABEL}', "/hooks enable signet-sync")
            )
    return found
