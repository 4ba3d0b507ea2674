"""Composes the command that a harness's settings use to call us, and recognises it later."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from signet_sync.errors import UsageError
from signet_sync.host.harness_settings.condition import HarnessProblem

# Every command of ours, of any version, Python and workspace: an installer replaces and removes these.
OURS = re.compile(r"signet[_-]sync\b.*\shook\s+(?:claude-code|codex|gemini|opencode|openclaw)\b", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Program:
    """The words that start signet-sync; `workspace` is an absolute path, None for the default one."""

    words: tuple[str, ...]
    workspace: str | None = None

    @classmethod
    def here(cls, workspace: str | None) -> Program:
        """Returns this installation. `-P` keeps Python from importing modules from a session's folder.

        Raises `UsageError` for paths with control characters or bytes that are not UTF-8: settings cannot contain them.
        """
        python = _python()
        for path in (python, workspace or ""):
            if not path.isprintable():
                raise UsageError(
                    "a hook cannot name a path with control characters or broken text",
                    path=path,
                    hint="rename the folder",
                )
        return cls((python, "-P", "-m", "signet_sync"), workspace)

    @property
    def start(self) -> list[str]:
        """Returns the words before the name of a command."""
        return [*self.words, *(("--workspace", self.workspace) if self.workspace else ())]

    def hook(self, harness: str) -> list[str]:
        """Returns the words of the hook."""
        return [*self.start, "hook", harness]

    def server(self, flags: Sequence[str]) -> list[str]:
        """Returns the words of the MCP server."""
        return [*self.start, "mcp", *flags]

    def again(self, harness: str) -> str:
        """Returns what a person types to install our hooks again, for their workspace."""
        place = ["--workspace", self.workspace] if self.workspace else []
        return shlex.join(["signet-sync", *place, "hooks", "install", harness])

    def command(self, harness: str) -> str:
        """Returns the hook as one string for a shell, which all harnesses run; few support a list of words."""
        return shlex.join(self.hook(harness))


def _python() -> str:
    """Returns this interpreter; for a virtual environment always the same of its names."""
    python = os.path.abspath(sys.executable)
    usual = os.path.join(os.path.dirname(python), "python3")
    in_environment = sys.prefix != sys.base_prefix
    return usual if in_environment and os.path.realpath(usual) == os.path.realpath(python) else python


def workspace_of(words: Sequence[str]) -> str | None:
    """Returns the workspace that a command names; None for the default one."""
    if "--workspace" in words[:-1]:
        return words[words.index("--workspace") + 1]
    return None


def command_problems(
    words: Sequence[str], program: Program, harness: str, wanted: Sequence[str]
) -> list[HarnessProblem]:
    """Returns what is wrong with a command of ours in a harness's settings; `wanted` is what we would write now."""
    again = program.again(harness)
    if not words or not os.access(words[0], os.X_OK):
        name = words[0] if words else "a command that cannot be read"
        return [HarnessProblem("python-gone", f"the hooks call {name}, which does not exist", again)]
    if workspace_of(words) != program.workspace:
        fed = workspace_of(words) or "the default workspace"
        return [HarnessProblem("other-workspace", f"its sessions go to {fed}", f"{again} points them to this one")]
    if words[0] != wanted[0]:
        message = f"the hooks call {words[0]}, not this installation"
        return [HarnessProblem("other-python", message, f"{again} changes that")]
    if list(words) != list(wanted):
        return [HarnessProblem("outdated", "the hooks were written by another version", again)]
    return []
