"""`demo`: shows the main functions on sample sessions, from end to end."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import click

from signet_sync.admin.demo import entities, sessions
from signet_sync.app.workspace import opened
from signet_sync.cli.main import Context, confirm, json_option, pass_context, yes_option
from signet_sync.cli.parsing import Command
from signet_sync.cli.reindex import show as show_pass
from signet_sync.formats.paths import display
from signet_sync.integrity import report
from signet_sync.settings.model import load
from signet_sync.sync.engine import run_pass
from signet_sync.sync.request import Request

_QUESTION = "who is Priya"
_WORDS = "Priya counts in millimetres"


@click.command(cls=Command)
@click.argument("path", required=False, default="signet-demo")
@yes_option
@json_option
@pass_context
def demo(context: Context, path: str, yes: bool) -> int:
    """Create a workspace of sample sessions in PATH (default: ./signet-demo), index it, and show the result.

    An earlier demo in PATH is deleted with everything in it, after you agree.
    """
    root = os.path.abspath(os.path.expanduser(path))
    if sessions.is_demo(root):
        confirm(context, f"delete the earlier demo in {display(root)}, with everything in it?", yes=yes)
    sessions.make(root)
    settings, _ = load(root)
    # In a separate index, as on another machine: our own index then sees all of it for the first time, damage included.
    with opened(root, settings, database=":memory:") as elsewhere:
        made = sessions.write_sessions(elsewhere, context.now_us)
    with opened(root, settings) as workspace:
        outcome = run_pass(workspace, Request(now_us=context.now_us))
        sessions.mark(workspace.state)
        planted = entities.make_entities(workspace, context.now_us)
        document = report.reindexed(workspace, outcome, context.now_us)
    context.answer(document, lambda: _show(root, len(made), planted, document))
    return 0


def _show(root: str, files: int, entities: Sequence[str], document: dict[str, Any]) -> None:
    with open(os.path.join(root, "MEMORY.md"), encoding="utf-8") as handle:
        page = handle.read()
    click.secho(f"{files} sample files in {root}; this is their MEMORY.md:", bold=True)
    click.echo()
    _show_page(page)
    click.echo()
    click.secho("Result of the first pass", bold=True)
    show_pass(document)
    click.echo()
    click.secho(f"{len(entities)} entities, files to read and edit", bold=True)
    for profile in entities:
        click.echo(f"  {profile}")
    command = shlex.join([*_program(), "--workspace", os.path.relpath(root)])
    click.echo()
    click.secho("Four things to try", bold=True)
    click.echo(f"  {command} recall {_QUESTION}")
    click.echo(f"  {command} expand {_first_handle(page)}      # any ^handle of the page leads down to the transcript")
    click.echo(
        f"  {command} remember {_WORDS}      # recall it three times with two different queries, then run: dream"
    )
    click.echo(f"  {command} run      # then edit or delete a file in {os.path.relpath(root)}/memory and look again")


def _first_handle(page: str) -> str:
    """Returns the handle of the page's first line, as an id without characters special to shells."""
    return next(match[1] for match in re.finditer(r"\^([a-z]-[a-z2-7]+)$", page, re.MULTILINE))


def _program() -> list[str]:
    """Returns how this program was called, so that the commands shown can be pasted."""
    if shutil.which("signet-sync"):
        return ["signet-sync"]
    called = sys.argv[0]
    return [os.path.relpath(called)] if os.path.basename(called) == "signet-sync" else ["python", "-m", "signet_sync"]


def _show_page(page: str) -> None:
    """Prints the page for a person: headings highlighted, links dimmed, nothing cut."""
    for line in page.split("\n"):
        if line.startswith("#"):
            click.secho(line, fg="cyan", bold=True)
        elif line.startswith("<!--"):
            click.secho(line, dim=True)
        else:
            click.echo(re.sub(r"\[\[[^\]]*\]\]", lambda m: click.style(m[0], dim=True), line))
