"""The lists of docs/commands.md are made from the command line itself; this test holds and writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from command_lines import leaves
from doc_pages import ROOT, generated

from signet_sync.cli import main
from signet_sync.cli.commands import COMMANDS

COMMON = {"--agent", "--json", "--now"}


def option_lines(*, everywhere: bool) -> Iterator[str]:
    context = click.Context(main.group, info_name="signet-sync", help_option_names=["-h", "--help"])
    for parameter in context.command.params:
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None and everywhere is (getattr(parameter, "everywhere", True)):
            yield f"* `{record[0]}`: {' '.join(record[1].split())}\n"


def names(command: click.Command) -> str:
    """The long names of the options that are a command's own."""
    options = (parameter for parameter in command.params if isinstance(parameter, click.Option))
    own = (one for one in options if not (one.hidden or getattr(one, "everywhere", False)))
    shown = (max(option.opts, key=len) for option in own)
    return " ".join(f"`{name}`" for name in shown if name not in COMMON)


def commands() -> str:
    """A line for each command, under the heading of its group."""
    page = ""
    group = None
    for words, command in leaves(main.group, hidden=False):
        if COMMANDS[words[0]].group != group:
            group = COMMANDS[words[0]].group
            page += f"\n## {group.capitalize()}\n\n"
        below = click.Context(command, info_name=words[-1], help_option_names=["-h", "--help"])
        arguments = [
            parameter.make_metavar(below) for parameter in command.params if isinstance(parameter, click.Argument)
        ]
        call = " ".join((*words, *arguments))
        text = " ".join((command.help or command.short_help or "").partition("\n\n")[0].split())
        first = re.split(r"(?<=\.) (?=[A-Z({])", text)[0]
        page += f"* `{call}`: {first} {names(command)}".rstrip() + "\n"
    return page.lstrip()


def test_the_page_of_commands_is_what_the_command_line_says() -> None:
    everywhere, some = ("".join(option_lines(everywhere=where)) for where in (True, False))
    generated(ROOT / "docs" / "commands.md", everywhere=everywhere, some=some, commands=commands())
