"""`extras`: lists optional features and installs them into the environment that runs signet-sync."""

from __future__ import annotations

import shlex
import subprocess

import click

from signet_sync.cli.main import Context, emit, json_option, pass_context
from signet_sync.cli.parsing import Group
from signet_sync.errors import ConfigError, extra_hint
from signet_sync.host import extras as host


@click.group(cls=Group)
def extras() -> None:
    """List or install optional features; a plain installation has none of them."""


@extras.command("list")
@json_option
@pass_context
def list_(context: Context) -> int:
    """List the extras, what each is for, and whether it is installed."""
    found = [
        {"name": name, "purpose": purpose, "installed": host.is_installed(name), "packages": host.requirements(name)}
        for name, purpose in host.PURPOSES.items()
    ]

    def show() -> None:
        for one in found:
            click.echo(f"{one['name']:<12}{'installed' if one['installed'] else '-':<11}{one['purpose']}")
        click.echo(f"\nTo add one: {extra_hint('NAME')}")

    context.answer({"extras": found}, show)
    return 0


@extras.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--dry-run", is_flag=True, help="Print the command that would run, and run nothing.")
@json_option
@pass_context
def add(context: Context, names: tuple[str, ...], dry_run: bool) -> int:
    """Install extras with pipx, uv or pip, whichever installed signet-sync."""
    command = host.command_to_add(list(names))
    if dry_run:
        context.answer({"command": command, "ran": False}, lambda: click.echo(shlex.join(command)))
        return 0
    context.say(shlex.join(command))
    try:
        # stdout is for our own answer
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=context.as_json, check=False)
    except OSError as error:
        raise ConfigError(
            f"{command[0]} could not be started: {error.strerror}",
            hint=f"run it yourself: {shlex.join(command)}",
            code="installer-failed",
        ) from None
    if done.returncode:
        raise ConfigError(
            f"{command[0]} failed with {done.returncode}; nothing was added",
            hint=f"run it yourself: {shlex.join(command)}",
            code="installer-failed",
        )
    if context.as_json:
        emit({"command": command, "ran": True})
    else:
        click.echo(f"installed: {', '.join(names)} (a running agent or MCP server uses it after a restart)")
    return 0
