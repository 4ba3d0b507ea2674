"""OpenCode: a plug-in file in `opencode/plugins` of the person's settings; OpenCode loads it without being told."""

from __future__ import annotations

import os
from collections.abc import Mapping

from signet_sync.host.settings import script_file
from signet_sync.host.settings.condition import Condition, Plan, Problem
from signet_sync.host.settings.places import home
from signet_sync.host.settings.program import Program, command_problems, workspace_of

NAME = "opencode"
_EVENTS = ("session.created", "session.idle", "session.compacted", "dispose", "experimental.chat.system.transform")
_SCRIPT = "opencode.js"


def folder(environ: Mapping[str, str]) -> str:
    """Where the person's settings are."""
    return os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home(environ), ".config"), "opencode")


def install(program: Program, environ: Mapping[str, str], *, trust: bool = False) -> Plan:
    """Our plug-in into its folder. Raises `ConfigError` where another file of that name stands there."""
    del trust
    return Plan((script_file.writing(_path(environ), script_file.script(_SCRIPT, program)),))


def uninstall(environ: Mapping[str, str]) -> Plan:
    """Our plug-in away."""
    return Plan((script_file.removing(_path(environ)),))


def look(program: Program, environ: Mapping[str, str]) -> Condition:
    """Whether our plug-in is there and calls this installation."""
    path = _path(environ)
    text, problems = script_file.look(path)
    found = os.path.isdir(folder(environ))
    if text is None:
        return Condition(NAME, found, path, missing=_EVENTS, problems=problems)
    words = script_file.words(text)
    told = command_problems(words, program.start, NAME)
    if not told and text != script_file.script(_SCRIPT, program):
        told = [Problem("outdated", "the plug-in was written by another version", program.again(NAME))]
    return Condition(NAME, found, path, _EVENTS, (), workspace_of(words), tuple(told))


def _path(environ: Mapping[str, str]) -> str:
    return os.path.join(folder(environ), "plugins", "signet-sync.js")
