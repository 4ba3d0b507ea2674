"""`help`: shows the help of a command, or the list of all commands."""

from __future__ import annotations

import click

from signet_sync.cli.commands import GROUPS
from signet_sync.cli.main import write_commands
from signet_sync.cli.parsing import Command, Group


@click.command(cls=Command)
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="List all commands, by group.")
@click.pass_context
def help_(ctx: click.Context, words: tuple[str, ...], everything: bool) -> None:
    """Show the help of a command; without COMMAND that of signet-sync."""
    if everything and words:
        raise click.UsageError("--all takes no COMMAND", ctx)
    if everything:
        formatter = ctx.make_formatter()
        write_commands(formatter, GROUPS)
        click.echo(formatter.getvalue().rstrip("\n"))
        return
    found = ctx.find_root()
    for word in words:
        command = found.command
        if not isinstance(command, Group):
            raise click.UsageError(f"{found.command_path} has no commands", found)
        name, below, _ = command.resolve_command(found, [word])
        if below is None:
            raise click.UsageError(f"no command {word!r}", found)
        found = click.Context(below, info_name=name, parent=found)
    click.echo(found.get_help())
