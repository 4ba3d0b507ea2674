"""`completion`: prints a shell's completion script, with a line on where to save it."""

from __future__ import annotations

import click

from signet_sync.cli.main import group
from signet_sync.cli.parsing import Command

# Where each shell searches by default.
_PLACES = {
    "bash": "~/.local/share/bash-completion/completions/signet-sync",
    "zsh": "~/.zfunc/_signet-sync",
    "fish": "~/.config/fish/completions/signet-sync.fish",
}
_MORE = {
    "bash": "# It is loaded at the first Tab after signet-sync; needs bash-completion and bash 4.4 or newer.\n",
    "zsh": "# Needs this line in ~/.zshrc, before compinit: fpath=(~/.zfunc $fpath)\n",
    "fish": "",
}


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(list(_PLACES)))
def completion(shell: str) -> int:
    """Print the completion script of a shell; its first lines say where to save it."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(group, {}, "signet-sync", "_SIGNET_SYNC_COMPLETE").source().strip("\n")
    # zsh recognises a completion file only by its first line.
    first, newline, rest = script.partition("\n") if script.startswith("#compdef") else ("", "", script)
    click.echo(first + newline + _about(shell) + rest)
    return 0


def _about(shell: str) -> str:
    place = _PLACES[shell]
    folder = place.rpartition("/")[0]
    return (
        "# Completion of signet-sync. To install it for every new shell:\n"
        f"#   mkdir -p {folder}\n"
        f"#   signet-sync completion {shell} > {place}\n{_MORE[shell]}"
    )
