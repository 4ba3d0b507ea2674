"""`demo`: shows the main functions on sample sessions, from end to end."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import textwrap

import click

from signet_sync.admin.demo import sessions
from signet_sync.app.workspace import opened
from signet_sync.cli.main import Context, confirm, json_option, pass_context, yes_option
from signet_sync.cli.parsing import Command
from signet_sync.formats.paths import display
from signet_sync.integrity import report
from signet_sync.settings.model import load
from signet_sync.sync.engine import run_pass
from signet_sync.sync.index_records import PROBLEMS
from signet_sync.sync.store import counts
from signet_sync.sync.workspace import Request
from signet_sync.text.phrases import count_noun

_QUESTION = "may a measurement be deleted"
_WORDS = "Priya counts in millimetres"
_WIDTH = 100


@click.command(cls=Command)
@click.argument("path", required=False)
@yes_option
@json_option
@pass_context
def demo(context: Context, path: str | None, yes: bool) -> int:
    """Create a workspace of sample sessions in PATH (default: ./signet-demo), index it, and show what to try.

    An earlier demo in PATH is deleted with everything in it, after you agree.
    """
    root = context.new_root(path or (None if context.workspace_flag else "signet-demo"))
    if sessions.is_demo(root):
        confirm(context, f"delete the earlier demo in {display(root)}, with everything in it?", yes=yes)
    sessions.make(root)
    settings, _ = load(root)
    # In a separate index, as on another machine: our own index then sees all of it for the first time, damage included.
    with opened(root, settings, database=":memory:") as elsewhere:
        sessions.write_sessions(elsewhere, context.now_us)
    with opened(root, settings) as workspace:
        outcome = run_pass(workspace, Request(now_us=context.now_us))
        sessions.mark(workspace.state)
        sessions.make_entities(workspace, context.now_us)
        document = report.describe_pass(workspace, outcome, context.now_us)
        held = counts.sessions(workspace.database)
    wrong = sum(document["counts"][verdict] for verdict in PROBLEMS)

    def show() -> None:
        with open(os.path.join(root, "MEMORY.md"), encoding="utf-8") as handle:
            page = handle.read()
        _show_start(root, page, held, len(document["agents"]))
        _show_what_to_try(root, page, wrong)

    context.answer(document, show)
    return 0


def _show_start(root: str, page: str, sessions: int, agents: int) -> None:
    """Prints what the page says of each project."""
    where = os.path.relpath(root)
    click.secho(f"{where}/ contains {sessions} made-up sessions of {count_noun(agents, 'agent')}", bold=True)
    click.echo("They were summarised on this machine, by rules, without a language model.")
    click.echo()
    click.secho("The next session would know, among other things:", bold=True)
    width = min(shutil.get_terminal_size().columns, _WIDTH)
    for line in re.findall(r"^- (\*\*.*\): .*?)(?: \^\S+)*$", page, re.MULTILINE):
        click.echo(textwrap.fill(line.replace("**", ""), width, initial_indent="  ", subsequent_indent="    "))


def _show_what_to_try(root: str, page: str, wrong: int) -> None:
    place = os.path.relpath(root)
    command = shlex.join([*_program(), "--workspace", place])
    # As an id, without characters special to shells.
    first = next(match[1] for match in re.finditer(r"\^([a-z]-[a-z2-7]+)$", page, re.MULTILINE))
    tried = {
        "what answers a question, the best first, each with its source": f"recall {_QUESTION}",
        "the sessions of a project; each ^handle leads further down": f"expand {first}",
        "what a session of lantern gets at its start": "context --project /home/mira/code/lantern",
        "a statement to keep; recall finds it from now on": f"remember {_WORDS}",
        f"{count_noun(wrong, 'problem')}, made on purpose, and the copy of a sync service": "check",
    }
    click.echo()
    click.secho("Try:", bold=True)
    for told, words in tried.items():
        click.secho(f"  # {told}", dim=True)
        click.echo(f"  {command} {words}")
    click.echo()
    click.echo(f"All that is known: {os.path.join(place, 'MEMORY.md')}. With your own sessions: signet-sync setup")
    click.echo(f"Remove the demo: {command} eject --yes && rm -r {shlex.quote(place)}")


def _program() -> list[str]:
    """Returns how this program was called, so that the commands shown can be pasted."""
    if shutil.which("signet-sync"):
        return ["signet-sync"]
    called = sys.argv[0]
    return [os.path.relpath(called)] if os.path.basename(called) == "signet-sync" else ["python", "-m", "signet_sync"]
