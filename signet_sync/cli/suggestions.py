"""Proposes which command or option a word was meant to be that is none. Only for errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from signet_sync.cli.commands import ALIASES, MEANT
from signet_sync.errors import UsageError, proposing

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from signet_sync.cli.parsing import Group

_SHOWN = 3
_ALIKE = 70  # of 100: `rapidfuzz`'s ratio of two names
_NEAR = 80  # of 100: the same, for names that begin with another letter


def unknown_command(ctx: click.Context, group: Group, name: str) -> UsageError:
    """Returns the error for a word that is no command of a group, with commands that are called nearly so."""
    hidden = {one for one, command in group.commands.items() if command.hidden}  # none of the program, loaded on use
    known = [one for one in group.list_commands(ctx) if one not in hidden]
    meant = alike(name, [*known, *(alias for alias in ALIASES if group.named(ctx, alias))])
    words = ctx.command_path.partition(" ")[2]
    meant = [f"{words} {group.named(ctx, one)}".strip() for one in meant]
    if ctx.parent is None:
        below = [f"{one} {name}" for one in known if name in getattr(group.get_command(ctx, one), "commands", ())]
        meant = [MEANT[name]] if name in MEANT else below or meant
    error = UsageError(f"{words}{': ' if words else ''}no command {name[:60]!r}", hint=f"see {ctx.command_path} --help")
    return proposing(error, list(dict.fromkeys(meant)))


def alike(word: str, known: Sequence[str]) -> list[str]:
    """Returns those of some names that begin with a word or are spelled nearly like it, the best first."""
    from rapidfuzz import fuzz, process

    found = process.extract(word, known, scorer=fuzz.ratio, score_cutoff=_ALIKE, limit=_SHOWN)
    # Who mistypes a short word seldom begins it with another letter.
    near = [one for one, score, _ in found if score >= _NEAR or one[:1] == word[:1]]
    begun = [one for one in known if len(word) > 2 and one.startswith(word)]
    return list(dict.fromkeys([*begun, *near]))[:_SHOWN]
