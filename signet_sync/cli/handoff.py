"""`handoff`: prints what another agent needs to go on, or starts one with it."""

from __future__ import annotations

import os

import click

from signet_sync.capture.harnesses import registry
from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command, OfWorkspace
from signet_sync.errors import UsageError

REQUEST = "Go on with this work."


@click.command(cls=Command)
@click.argument("session", type=OfWorkspace(), required=False)
@click.option(
    "--project", metavar="PROJECT", help="Its folder, or its name or origin (default: the working directory)."
)
@click.option("--to", metavar="HARNESS", help="Start this harness here, with the text as its first prompt.")
@agent_option
@now_option
@json_option
@pass_context
def handoff(context: Context, session: str | None, project: str | None, to: str | None) -> int:
    """Print what another agent needs to go on: how a session ended, what it did, what holds, what is open.

    Most tokens: 1,500; what is known has its handle. Without SESSION the newest one of the project.
    """
    program = registry.facts(to).first_prompt if to is not None else ()
    if to is not None and not program:
        able = ", ".join(name for name in registry.names() if registry.facts(name).first_prompt)
        raise UsageError(f"{to} takes no first prompt", hint=f"one of: {able}; or print the text and paste it")
    given = os.path.expanduser(project) if project else os.getcwd()
    folder = os.path.abspath(given) if os.path.isabs(given) or os.path.exists(given) else None
    found = context.ask("handoff", session=session, project=given, folder=folder, now_us=context.now_us)
    if to is None:
        context.answer(found, lambda: click.echo(found["text"]))
        return 0
    try:
        os.execvp(program[0], [*program, f"{found['text']}\n\n{REQUEST}"])  # noqa: S606
    except OSError as error:
        raise UsageError(
            f"{program[0]} cannot be started: {error.strerror}", hint="install it, or leave --to out"
        ) from None
