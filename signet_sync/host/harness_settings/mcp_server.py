"""Edits our MCP server in a harness's settings, JSON or TOML, and says what is wrong with an existing entry."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from signet_sync.errors import ConfigError, extra_hint
from signet_sync.host.harness_settings.condition import HarnessProblem
from signet_sync.host.harness_settings.program import Program, workspace_of
from signet_sync.host.harness_settings.settings_text import SettingsText, Way

NAME = "signet-sync"
INSTALL = extra_hint("mcp")

# Every server of ours, of any version, Python and workspace, written by us or by a person.
_OURS = re.compile(r"(?<![\w-])signet[_-]sync(?![\w-]).*\smcp(?:\s|\Z)", re.DOTALL)

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ServerList:
    """Where a harness has its MCP servers: the file, the members that lead to them, and the entry for some words."""

    path: Callable[[Mapping[str, str]], str]
    way: Callable[[Mapping[str, Any]], tuple[str, ...]]
    entry: Callable[[Sequence[str]], Entry]
    # Only in a new entry: a person's later changes are kept.
    fresh: Callable[[Mapping[str, str]], Entry] = lambda environ: {}

    def merge(
        self, settings: SettingsText, program: Program, flags: Sequence[str] | None, environ: Mapping[str, str]
    ) -> None:
        """Puts a server with these flags there; with None renews one of ours that would not start or serves another
        workspace, with its own flags. What a person has added to it stays. Raises `ConfigError`.
        """
        way: Way = (*self.way(settings.data), NAME)
        present = settings.at(way)
        words = words_of(present)
        if flags is not None:
            if present is not None and not is_ours(words):
                raise ConfigError(
                    f"an MCP server named {NAME} already exists and is not ours",
                    path=settings.path,
                    hint="give it another name, then try again; nothing was written",
                    code="foreign-server",
                )
        elif is_ours(words) and stale(words, program, "", environ):
            flags = words[words.index("mcp") + 1 :] if "mcp" in words else []
        else:
            return
        entry = self.entry(program.server(flags))
        if present is None:
            settings.put(way, entry | self.fresh(environ))
        for key, value in entry.items():
            settings.put((*way, key), value)

    def strip(self, settings: SettingsText) -> None:
        """Takes our server out; one that only has our name stays. Raises `ConfigError`."""
        way = (*self.way(settings.data), NAME)
        if is_ours(words_of(settings.at(way))):
            settings.remove(way)


def split(words: Sequence[str]) -> Entry:
    """Returns the entry for harnesses that separate a program from its arguments."""
    return {"command": words[0], "args": list(words[1:])}


def words_of(entry: object) -> list[str]:
    """Returns the words with which an entry starts a program, in any notation; empty if it starts none."""
    if not isinstance(entry, dict):
        return []
    command, arguments = entry.get("command"), entry.get("args")
    words = command if isinstance(command, list) else [command] if isinstance(command, str) else []
    return [*map(str, words), *map(str, arguments if isinstance(arguments, list) else ())]


def is_ours(words: Sequence[str]) -> bool:
    """Returns whether these words start our server; one that only has our name is another program's."""
    return _OURS.search(" ".join(words)) is not None


def problems(words: Sequence[str], program: Program, harness: str, environ: Mapping[str, str]) -> list[HarnessProblem]:
    """Returns what keeps a server of ours from starting, or from serving this workspace."""
    if found := stale(words, program, harness, environ):
        return found
    if words[0] == program.words[0] and find_spec("mcp") is None:
        return [HarnessProblem("server-extra", "the MCP server cannot start: the extra `mcp` is missing", INSTALL)]
    return []


def stale(words: Sequence[str], program: Program, harness: str, environ: Mapping[str, str]) -> list[HarnessProblem]:
    """Returns the problems that a new installation solves."""
    again = program.again(harness)
    if shutil.which(words[0], path=environ.get("PATH")) is None:
        return [HarnessProblem("server-gone", f"the MCP server is started by {words[0]}, which does not exist", again)]
    if workspace_of(words) != program.workspace:
        served = workspace_of(words) or "the default workspace"
        return [HarnessProblem("server-elsewhere", f"its MCP server serves {served}", f"{again} points it to this one")]
    # One that we did not write: a person's own way to start it is fine.
    if tuple(words[1:4]) == program.words[1:4] and words[0] != program.words[0]:
        message = f"the MCP server is started by {words[0]}, not this installation"
        return [HarnessProblem("server-other-python", message, f"{again} changes that")]
    return []
