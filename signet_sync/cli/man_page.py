"""Writes the manual page: every command with its help and options, as roff for `man`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from signet_sync import __version__
from signet_sync.cli.commands import ALIASES, COMMANDS, GROUPS

_ENVIRONMENT = {
    "SIGNET_WORKSPACE": "The workspace, unless --workspace names one.",
    "SIGNET_DB": "The database, unless --db names one.",
    "SIGNET_STATE": "The folder of the state folders of all workspaces.",
    "SIGNET_CONFIG": "The settings file of the user.",
    "NO_COLOR": "If set, no colours.",
}


def manual(root: click.Context) -> str:
    """Returns signet-sync(1) as roff."""
    return "\n".join(_lines(root)) + "\n"


def _lines(root: click.Context) -> Iterator[str]:
    program = root.command
    yield f'.TH SIGNET\\-SYNC 1 "" "signet\\-sync {_plain(__version__)}" "User Commands"'
    yield from (".SH NAME", f"signet\\-sync \\- {_plain(_first(program.help or '').rstrip('.'))}")
    yield from (".SH SYNOPSIS", ".B signet\\-sync", "[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGS\\fR]...")
    yield ".SH OPTIONS"
    yield from _options(root)
    yield from (".SH COMMANDS", "A word that is no command stands for the first of these that there is:")
    yield _plain("; ".join(f"{alias}: {', '.join(known)}" for alias, known in ALIASES.items()) + ".")
    for group in GROUPS:
        yield f".SS {group.capitalize()}"
        lines = [line for name, one in COMMANDS.items() if one.group == group for line in _command(root, name)]
        yield from lines[1:]  # a heading is a paragraph's beginning already
    yield from (".SH EXIT STATUS", *_paragraphs(program.epilog or ""))
    yield ".SH ENVIRONMENT"
    for name, text in _ENVIRONMENT.items():
        yield from (".TP", f".B {_plain(name)}", _plain(text))


def _command(parent: click.Context, name: str) -> Iterator[str]:
    command = parent.command.get_command(parent, name) if isinstance(parent.command, click.Group) else None
    if command is None or command.hidden:
        return
    context = click.Context(command, info_name=name, parent=parent)
    words = context.command_path.partition(" ")[2]
    arguments = " ".join(one.make_metavar(context) for one in command.params if isinstance(one, click.Argument))
    yield from (".PP", f"\\fB{_plain(words)}\\fR {_plain(arguments)}".rstrip(), ".RS", *_paragraphs(command.help or ""))
    yield from _options(context)
    yield ".RE"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            yield from _command(context, below)


def _options(context: click.Context) -> Iterator[str]:
    for parameter in context.command.params:
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is not None:
            yield from (".TP", f".B {_plain(record[0])}", _plain(" ".join(record[1].split())))


def _paragraphs(text: str) -> Iterator[str]:
    """Yields a help text: paragraphs that click fills, and those after `\\b` line by line."""
    # `inspect.cleandoc` has removed the indentation; a form feed ends what a help shows.
    for number, paragraph in enumerate(re.split(r"\n\s*\n", text.partition("\f")[0].strip("\n"))):
        if number:
            yield ".PP"
        kept, _, rest = paragraph.rpartition("\b\n")
        if "\b" in paragraph:
            yield from filter(None, [_plain(" ".join(kept.replace("\b", "").split()))])
            yield from (".nf", *map(_plain, rest.rstrip("\n").split("\n")), ".fi")
        else:
            yield _plain(" ".join(paragraph.split()))


def _first(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def _plain(text: str) -> str:
    """Escapes what roff would read as a request, and what is not ASCII."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = "".join(one if one.isascii() else f"\\[u{ord(one):04X}]" for one in text)
    return f"\\&{text}" if text.startswith((".", " ")) else text
