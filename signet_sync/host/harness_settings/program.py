"""Composes the commands that a harness's settings use to call us, and recognises them later."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from signet_sync.errors import UsageError
from signet_sync.host.harness_settings.settings_text import HarnessProblem

# Every command of ours, of any version, Python and workspace: an installer replaces and removes these.
OURS = re.compile(r"signet[_-]sync\b.*\shook\s+[a-z][a-z-]*\b", re.DOTALL)
_SERVER = re.compile(r"(?<![\w-])signet[_-]sync(?![\w-]).*\smcp(?:\s|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Program:
    """The words that start signet-sync; `workspace` is an absolute path, None for the default one."""

    words: tuple[str, ...]
    workspace: str | None = None

    @classmethod
    def here(cls, workspace: str | None) -> Program:
        """Returns this installation, for a virtual environment by always the same of its interpreter's names.

        `-P` keeps Python from importing modules from a session's folder. Raises `UsageError` for paths with control
        characters or bytes that are not UTF-8: settings cannot contain them.
        """
        python = os.path.abspath(sys.executable)
        usual = os.path.join(os.path.dirname(python), "python3")
        if sys.prefix != sys.base_prefix and os.path.realpath(usual) == os.path.realpath(python):
            python = usual
        for path in (python, workspace or ""):
            if not path.isprintable():
                message = "a hook cannot name a path with control characters or broken text"
                raise UsageError(message, path=path, hint="rename the folder")
        return cls((python, "-P", "-m", "signet_sync"), workspace)

    @property
    def start(self) -> list[str]:
        """Returns the words before the name of a command."""
        return [*self.words, *(("--workspace", self.workspace) if self.workspace else ())]

    def hook(self, harness: str) -> list[str]:
        """Returns the words of the hook."""
        return [*self.start, "hook", harness]

    def again(self, harness: str) -> str:
        """Returns what a person types to install our hooks again, for their workspace."""
        place = ["--workspace", self.workspace] if self.workspace else []
        return shlex.join(["signet-sync", *place, "hooks", "install", harness])

    def command(self, harness: str) -> str:
        """Returns the hook as one string for a shell, which all harnesses run; few support a list of words."""
        return shlex.join(self.hook(harness))

    def problems(
        self, kind: str, words: Sequence[str], harness: str, environ: Mapping[str, str]
    ) -> list[HarnessProblem]:
        """Returns what is wrong with a command of ours, of `hooks` or `server`, that a new installation solves."""
        again, hooks = self.again(harness), kind == "hooks"
        calls = "the hooks call" if hooks else "the MCP server is started by"
        if not words or shutil.which(words[0], path=environ.get("PATH")) is None:
            name = words[0] if words else "a command that cannot be read"
            return [HarnessProblem(f"{kind}-gone", f"{calls} {name}, which does not exist", again)]
        if workspace_of(words) != self.workspace:
            other = workspace_of(words) or "the default workspace"
            message = f"its sessions go to {other}" if hooks else f"its MCP server serves {other}"
            return [HarnessProblem(f"{kind}-elsewhere", message, f"{again} points them to this one")]
        # A server that we did not write is a person's own way to start it, which is fine.
        if words[0] != self.words[0] and (hooks or tuple(words[1:4]) == self.words[1:4]):
            return [HarnessProblem(f"{kind}-outdated", f"{calls} {words[0]}, not this installation", again)]
        return []


def workspace_of(words: Sequence[str]) -> str | None:
    """Returns the workspace that a command names; None for the default one."""
    return words[words.index("--workspace") + 1] if "--workspace" in words[:-1] else None


def server_words(entry: object) -> list[str]:
    """Returns the words with which an MCP server's entry starts a program, in any notation; empty if it starts none."""
    if not isinstance(entry, dict):
        return []
    command, arguments = entry.get("command"), entry.get("args")
    words = command if isinstance(command, list) else [command] if isinstance(command, str) else []
    return [*map(str, words), *map(str, arguments if isinstance(arguments, list) else ())]


def is_our_server(words: Sequence[str]) -> bool:
    """Returns whether these words start our MCP server; one that only has our name is another program's."""
    return _SERVER.search(" ".join(words)) is not None
