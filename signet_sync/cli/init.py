"""`init`: creates an empty workspace with a commented settings file."""

from __future__ import annotations

import json
import os
import textwrap

import click

from signet_sync.cli import main
from signet_sync.cli.main import Context, json_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.errors import WorkspaceError, reason
from signet_sync.formats.filename import artifact_name
from signet_sync.formats.paths import MEMORY, SETTINGS, display
from signet_sync.llm import provider_choice
from signet_sync.settings import model
from signet_sync.settings.model import ALL_SETTINGS
from signet_sync.storage import writing
from signet_sync.storage.files import folder, require_root
from signet_sync.storage.locations import locate, read_id
from signet_sync.text.phrases import count_noun

_TEMPLATE_HEAD = """\
# Settings of this workspace for signet-sync. Every line is optional; what is commented out is the default.
# docs/settings.md of signet-sync explains each one. A workspace's settings cannot run any program.
"""


@click.command(cls=Command)
@click.argument("path", required=False)
@json_option
@pass_context
def init(context: Context, path: str | None) -> int:
    """Create an empty workspace: its folders and a commented signet-sync.toml. What exists is not changed."""
    root = context.new_root(path)
    made = make(root)
    earlier = follow(context, root, made)

    def show() -> None:
        click.echo(f"workspace {root}: " + ("created " + ", ".join(made) if made else "already exists"))
        if earlier:
            click.secho(f"  {earlier}", fg="yellow")
        show_models(root)
        click.echo("next:")
        for words in ("setup", "reindex"):
            click.echo(f"  {context.command_line(words, root)}")

    context.answer({"workspace": root, "made": made, "earlier": earlier or None}, show)
    return 0


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

    with main.open_to_write(root, context.settings(), database=context.chosen_database) as workspace:
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


def show_models(root: str) -> None:
    """Prints the programs that PATH names with their settings; nothing if a person has decided, or without any."""
    found = provider_choice.list_models(os.environ)
    if not found or not provider_choice.is_undecided(model.load(root, anyway=True)[0]):
        return
    told = "rules make the summaries; a language model, which is sent texts of your sessions, is used if you add to"
    click.echo(display(f"{told} {model.user_file()} one of:"))
    for one in found:
        click.echo(f"  # {one.name}")
        for line in one.lines:
            click.echo(f"  {line}")
