"""Describes our MCP server in a harness's settings: its name and words, and what is wrong with an existing entry."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

from signet_sync.errors import ConfigError, extra_hint
from signet_sync.host.harness_settings.condition import Condition, HarnessProblem, Server
from signet_sync.host.harness_settings.program import Program, workspace_of

NAME = "signet-sync"
INSTALL = extra_hint("mcp")

# Every server of ours, of any version, Python and workspace, written by us or by a person.
_OURS = re.compile(r"(?<![\w-])signet[_-]sync(?![\w-]).*\smcp(?:\s|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Access:
    """Which agent's memory a server returns, how much of it, and by which tools; None means the default of `mcp`."""

    agent: str | None = None
    scope: str | None = None
    tools: str | None = None

    @property
    def flags(self) -> list[str]:
        """Returns the words after `mcp`."""
        given = (("--agent", self.agent), ("--scope", self.scope), ("--tools", self.tools))
        return [word for option, value in given if value for word in (option, value)]


def is_ours(words: Sequence[str]) -> bool:
    """Returns whether these words start our server; one that only has our name is another program's."""
    return _OURS.search(" ".join(words)) is not None


def wanted(present: Sequence[str], program: Program, access: Access | None, path: str | None) -> list[str] | None:
    """Returns the words to write to the settings; None if the present ones are kept.

    With `access` a server is requested; without, a server of ours that would not start, or not for this workspace, is
    rewritten with its flags. `path` is the PATH in which programs are searched.
    """
    if access is not None:
        return program.server(access.flags)
    if is_ours(present) and _stale(present, program, "", path):
        return program.server(_flags(present))
    return None


def with_server(
    condition: Condition,
    server: Server | None,
    program: Program,
    path: str | None,
    problems: Sequence[HarnessProblem] = (),
) -> Condition:
    """Returns a harness's state with that of our server; `problems` are problems of its settings."""
    found = list(problems)
    if server is not None:
        stale = _stale(server.words, program, condition.harness, path)
        found += stale
        if not stale and server.words[0] == program.words[0] and find_spec("mcp") is None:
            found.append(
                HarnessProblem("server-extra", "the MCP server cannot start: the extra `mcp` is missing", INSTALL)
            )
    return replace(condition, server=server, problems=(*condition.problems, *found))


def foreign(path: str) -> ConfigError:
    """Returns the error for a person's own server with our name."""
    return ConfigError(
        f"an MCP server named {NAME} already exists and is not ours",
        path=path,
        hint="give it another name, then try again; nothing was written",
        code="foreign-server",
    )


def unreadable(path: str, message: str) -> HarnessProblem:
    """Returns the problem of settings that may contain our server and cannot be read."""
    hint = "until this is corrected, the MCP server can be neither added nor removed"
    return HarnessProblem("settings-unparsable", f"{path}: {message}", hint)


def switched_off(what: str) -> HarnessProblem:
    """Returns the problem of a server that a person disabled; it stays disabled."""
    return HarnessProblem(
        "server-off", f"{what} keeps the MCP server from being started", "change that to have its tools"
    )


def _stale(words: Sequence[str], program: Program, harness: str, path: str | None) -> list[HarnessProblem]:
    """Returns the problems that a new installation solves."""
    again = program.again(harness)
    if shutil.which(words[0], path=path) is None:
        return [HarnessProblem("server-gone", f"the MCP server is started by {words[0]}, which does not exist", again)]
    if workspace_of(words) != program.workspace:
        served = workspace_of(words) or "the default workspace"
        return [HarnessProblem("server-elsewhere", f"its MCP server serves {served}", f"{again} points it to this one")]
    if tuple(words[1:4]) != program.words[1:4]:
        return []  # not written by us: a person's own way to start it is fine
    if words[0] != program.words[0]:
        message = f"the MCP server is started by {words[0]}, not this installation"
        return [HarnessProblem("server-other-python", message, f"{again} changes that")]
    return []


def _flags(words: Sequence[str]) -> list[str]:
    return list(words[words.index("mcp") + 1 :]) if "mcp" in words else []
