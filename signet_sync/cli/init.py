"""`init` and `demo`: create an empty workspace with a commented settings file, or one of sample sessions."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import textwrap

import click

from signet_sync.cli.main import Context, open_to_write
from signet_sync.cli.parsing import command
from signet_sync.errors import WorkspaceError, reason
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.paths import MEMORY, SETTINGS, display
from signet_sync.settings import model
from signet_sync.settings.model import ALL_SETTINGS
from signet_sync.storage import writing
from signet_sync.storage.files import folder, require_root
from signet_sync.storage.locations import locate, locate_workspace, read_id
from signet_sync.text.phrases import count_noun

_TEMPLATE_HEAD = """\
# Settings of this workspace for signet-sync. Every line is optional; what is commented out is the default.
# docs/settings.md of signet-sync explains each one. A workspace's settings cannot run any program.
"""


@command()
@click.argument("path", required=False)
def init(context: Context, path: str | None) -> None:
    """Create an empty workspace: its folders and a commented signet-sync.toml. What exists is not changed."""
    root = locate_workspace(path or context.workspace_flag)
    made = make(root)
    click.echo(f"workspace {root}: " + (f"created {', '.join(made)}" if made else "already exists"))
    if earlier := follow(context, root, made):
        click.secho(f"  {earlier}", fg="yellow")
    click.echo("next:")
    for words in ("setup", "reindex"):
        click.echo(f"  {context.command_line(words, root)}")


def make(root: str) -> list[str]:
    """Creates what a workspace lacks; returns its names. Raises `WorkspaceError`, `OSError`."""
    if os.path.exists(root):
        require_root(root)
    made = []
    if not os.path.isdir(root):
        try:
            os.makedirs(root, mode=0o700)
        except OSError as error:
            hint = "name a folder that you may create"
            raise WorkspaceError(f"the workspace cannot be created: {reason(error)}", path=root, hint=hint) from None
        made.append(root)
    if not os.path.isdir(os.path.join(root, MEMORY)):
        with folder(root, MEMORY, create=True):
            made.append(MEMORY)
    writing.prepare(root)
    try:
        writing.create_once(root, SETTINGS, template().encode())
        made.append(SETTINGS)
    except FileExistsError:
        pass
    return made


def follow(context: Context, root: str, made: list[str]) -> str:
    """Lets the index that is kept for this path follow a workspace made anew; returns what to say of the earlier one.

    Neither an id nor an artifact: the workspace was deleted, and who makes it anew accepts that its files are gone. One
    with an id may have lost memory/ alone, which is no decision of anybody's.
    """
    memory = os.path.join(root, MEMORY)
    anew = read_id(os.path.realpath(root)) is None and not any(map(artifact_name, os.listdir(memory)))
    database = context.chosen_database or locate(root).database
    if not (anew or MEMORY in made) or not os.path.exists(database):
        return ""
    from signet_sync.capture import store as capture_store  # loads the pass, for a workspace that was here before
    from signet_sync.sessions import store as results
    from signet_sync.sync import engine
    from signet_sync.sync.store.counts import count_indexed
    from signet_sync.sync.workspace import Request

    with open_to_write(root, context.settings(), database=context.chosen_database) as workspace:
        gone = count_indexed(workspace.database)
        outcome = engine.run_pass(workspace, Request(now_us=context.now_us, accept_removals=anew))
        with workspace.database.transaction():
            if outcome.cliff is None:  # what was there once may come again
                capture_store.forget_read(workspace.database)
                results.forget_answers(workspace.database)
    if outcome.cliff is not None:
        return f"{outcome.cliff.message}: {outcome.cliff.hint}"
    left = f"its {count_noun(gone, 'file')} left the index, " if gone else ""
    words = f"a workspace was here before: {left}memories and removals stay"
    return f"{words} (to delete these, too: {context.command_line('eject', root)})"


def template() -> str:
    """Returns a settings file with every setting of a workspace as a comment."""
    lines = [_TEMPLATE_HEAD]
    table = ""
    for field in ALL_SETTINGS:
        if not field.workspace:
            continue
        section, _, name = field.key.partition(".")
        if section != table:
            lines.append(f"\n[{section}]")
            table = section
        lines += textwrap.wrap(field.doc.replace("`", ""), 110, initial_indent="# ", subsequent_indent="# ")
        lines.append(f"# {name} = {json.dumps(field.default, ensure_ascii=False)}")
    return "\n".join(lines) + "\n"


# ── demo ──

_QUESTION = "may a measurement be deleted"
_WORDS = "Priya counts in millimetres"
_WIDTH = 100


@command("--yes")
@click.argument("path", required=False)
def demo(context: Context, path: str | None, yes: bool) -> None:
    """Create a workspace of sample sessions in PATH (default: ./signet-demo), index it, and show what to try.

    An earlier demo in PATH is deleted with everything in it, after you agree.
    """
    from signet_sync.admin import demo  # all of this only for the demo
    from signet_sync.sync.engine import run_pass
    from signet_sync.sync.index_records import PROBLEMS
    from signet_sync.sync.store import counts
    from signet_sync.sync.workspace import Request

    root = locate_workspace(path or context.workspace_flag or "signet-demo")
    if demo.is_demo(root):
        context.confirm(f"delete the earlier demo in {display(root)}, with everything in it?", yes=yes)
    demo.make(root)
    settings, _ = model.load(root)
    # In a separate index, as on another machine: our own index then sees all of it for the first time, damage included.
    with open_to_write(root, settings, database=":memory:") as elsewhere:
        demo.write_sessions(elsewhere, context.now_us)
    with open_to_write(root, settings) as workspace:
        run_pass(workspace, Request(now_us=context.now_us))
        demo.make_entities(workspace, context.now_us)
        held, verdicts = counts.sessions(workspace.database), counts.verdict_counts(workspace.database)
        agents = count_noun(len(counts.agents(workspace.database)), "agent")
    click.secho(f"{os.path.relpath(root)}/ contains {held} made-up sessions of {agents}", bold=True)
    click.echo("They were summarised on this machine, by rules, without a language model.")
    _show_demo(root, sum(verdicts.get(verdict, 0) for verdict in PROBLEMS))


def _show_demo(root: str, wrong: int) -> None:
    """Prints what the page says of each project, and what to try."""
    with open(os.path.join(root, "MEMORY.md"), encoding="utf-8") as handle:
        page = handle.read()
    click.echo()
    click.secho("The next session would know, among other things:", bold=True)
    width = min(shutil.get_terminal_size().columns, _WIDTH)
    for line in re.findall(r"^- (\*\*.*\): .*?)(?: \^\S+)*$", page, re.MULTILINE):
        click.echo(textwrap.fill(line.replace("**", ""), width, initial_indent="  ", subsequent_indent="    "))
    place = os.path.relpath(root)
    # As this program was called, so that what is shown can be pasted.
    program = ["signet-sync"]
    if not shutil.which("signet-sync"):
        own = os.path.basename(sys.argv[0]) == "signet-sync"
        program = [os.path.relpath(sys.argv[0])] if own else ["python", "-m", "signet_sync"]
    words = shlex.join([*program, "--workspace", place])
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
    for told, line in tried.items():
        click.secho(f"  # {told}", dim=True)
        click.echo(f"  {words} {line}")
    click.echo()
    click.echo(f"All that is known: {os.path.join(place, 'MEMORY.md')}. With your own sessions: signet-sync setup")
    click.echo(f"Remove the demo: {words} eject --yes && rm -r {shlex.quote(place)}")
