"""`restore`: gives a session back to its harness, which resumes it."""

from __future__ import annotations

import os
import shlex

import click

from signet_sync.cli.main import Context, agent_option, json_option, pass_context
from signet_sync.cli.parsing import Command, OfWorkspace
from signet_sync.text.phrases import counted


@click.command(cls=Command)
@click.argument("session", type=OfWorkspace())
@click.option(
    "--to-harness",
    "harness",
    metavar="HARNESS",
    is_flag=False,
    flag_value="",
    default="",
    help="Which one (default: that of the session): claude-code or codex.",
)
@agent_option
@json_option
@pass_context
def restore(context: Context, session: str, harness: str) -> int:
    """Write a session in its harness's own format, so that the harness resumes it, though it deleted its file.

    It has the words of both, calls and what these gave back as the vault keeps them. Thinking and images are not in it,
    nor what was redacted or left out.
    """
    from signet_sync.capture.restore import restore as write
    from signet_sync.sync.read_only import reading

    with reading(context.place()) as database:
        done = write(database, context.agent, session, harness, os.getcwd())

    def show() -> None:
        lost = [("redaction", done["redacted"]), ("image", done["images"]), ("cut result", done["cut"])]
        missing = ", ".join(["thinking", *(counted(number, name) for name, number in lost if number)])
        click.echo(f"restored {counted(done['turns'], 'turn')} to {done['path']}")
        click.echo(f"not in it: {missing}")
        click.echo(f"go on with: cd {shlex.quote(done['folder'])} && {done['command']}")

    context.answer(done, show)
    return 0
