"""docs/commands.md is generated from the command line itself; this test holds it and brings it up to date."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
from command_lines import leaves

from signet_sync.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"

HEAD = """\
# Commands

Every command with its options, generated from the command line. A command's `--help` explains them. Before the name of
any command:

{options}

Every command that prints data takes `--json`: one document on stdout and nothing else, also for errors. Messages go to
stderr.

Exit codes: 0 success, 1 problems found, 2 usage, 3 workspace or database unusable, 4 another agent is running, 5
halted for safety, 130 interrupted.

| command | does | options |
|---|---|---|
"""


def option_lines(command: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in command.params:
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None and "--help" not in record[0]:
            yield f"* `{record[0]}`: {record[1]}".rstrip(": ")


def names(command: click.Command) -> str:
    """The long names of a command's options."""
    options = (parameter for parameter in command.params if isinstance(parameter, click.Option))
    return " ".join(f"`{max(option.opts, key=len)}`" for option in options if not option.hidden)


def generated() -> str:
    context = click.Context(main.group, info_name="signet-sync", help_option_names=["-h", "--help"])
    page = HEAD.format(options="\n".join(option_lines(main.group, context)))
    for words, command in leaves(main.group, hidden=False):
        below = click.Context(command, info_name=words[-1], help_option_names=["-h", "--help"])
        arguments = [
            parameter.make_metavar(below) for parameter in command.params if isinstance(parameter, click.Argument)
        ]
        call = " ".join((*words, *arguments)).replace("|", "\\|")
        text = " ".join((command.help or command.short_help or "").replace("\b", "").partition("\f")[0].split())
        first = re.split(r"(?<=\.) (?=[A-Z({])", text)[0].replace("|", "\\|")
        page += f"| `{call}` | {first} | {names(command)} |\n"
    return page


def test_the_page_of_commands_is_what_the_command_line_says() -> None:
    if os.environ.get("WRITE_DOCS"):
        PAGE.write_text(generated(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == generated(), "WRITE_DOCS=1 pytest brings it up to date"
