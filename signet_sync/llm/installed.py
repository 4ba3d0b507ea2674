"""Names the language models of this machine, by the programs on PATH: none is run, nothing is opened or turned on."""

import shutil
from collections.abc import Mapping
from typing import NamedTuple

from signet_sync.settings.model import Settings


class InstalledModel(NamedTuple):
    """What could be used, and the lines of the user's settings that turn it on."""

    name: str
    lines: tuple[str, ...]


_KNOWN = (
    ("claude", "claude -p", ('provider = "command"', 'command = ["claude", "-p"]')),
    ("codex", "codex exec", ('provider = "command"', 'command = ["codex", "exec", "--skip-git-repo-check", "-"]')),
    ("ollama", "Ollama", ('provider = "ollama"', 'model = "…"  # a name that `ollama list` shows')),
)


def list_models(environ: Mapping[str, str]) -> list[InstalledModel]:
    """Lists the known programs that PATH names."""
    path = environ.get("PATH", "")
    return [
        InstalledModel(name, ("[llm]", *lines)) for program, name, lines in _KNOWN if shutil.which(program, path=path)
    ]


def is_undecided(settings: Settings) -> bool:
    """Returns whether the user's settings neither name a provider nor turn models off."""
    return not settings.llm_provider
