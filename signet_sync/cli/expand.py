"""`expand`: follows a handle to its node, the surroundings, and its words in the transcript."""

from __future__ import annotations

import shlex
from functools import partial
from typing import Any

import click

from signet_sync.cli.main import Context, agent_option, json_option, pass_context
from signet_sync.cli.parsing import Command, OfWorkspace
from signet_sync.recall.as_text import expanded_lines


@click.command(cls=Command)
@click.argument("handle", type=OfWorkspace())
@click.option(
    "--budget",
    type=click.IntRange(1, 1_000_000),
    default=2_000,
    show_default=True,
    metavar="TOKENS",
    help="Most text shown.",
)
@agent_option
@json_option
@pass_context
def expand(context: Context, handle: str, budget: int) -> int:
    """Follow a handle of MEMORY.md down to the transcript.

    HANDLE is an id or ^handle as on a page, its beginning (six characters or more: t-7c2q), a wikilink or path, or a
    session.
    """
    document = context.ask("expand", handle=handle, budget=budget)
    context.answer(document, lambda: _show(document))
    return 0


def _show(document: dict[str, Any]) -> None:
    bold, cyan = partial(click.style, bold=True), partial(click.style, fg="cyan")
    for line in expanded_lines(document, bold=bold, cyan=cyan, quote=shlex.quote, rest=": --json lists them"):
        click.echo(line)
