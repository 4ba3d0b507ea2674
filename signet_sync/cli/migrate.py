"""`migrate`: brings over what another program remembers, and reports every row; of Signet it takes the hooks out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

import click

from signet_sync.admin import signet as signet_admin
from signet_sync.cli.main import (
    Context,
    confirm,
    json_option,
    now_option,
    open_to_write,
    pass_context,
    show_by_hand,
    show_redactions,
    yes_option,
)
from signet_sync.cli.parsing import Command
from signet_sync.errors import DatabaseError
from signet_sync.formats.paths import display
from signet_sync.migration import databases, operations
from signet_sync.migration.items import Report
from signet_sync.storage.database.connection import Database
from signet_sync.storage.files import require_root
from signet_sync.storage.locations import StateFolder
from signet_sync.sync import engine
from signet_sync.sync.workspace import Request, Workspace
from signet_sync.text.phrases import count_noun

_HELP = f"""Bring over what another program remembers, each thing once.

\b
signet           PATH is a memories.db, or the workspace that has one (default: this one)
claude-mem       observations and session summaries: PATH is claude-mem.db, or its folder
basic-memory     observations and relations in notes: PATH is a folder of notes, or one note
openclaw-memory  MEMORY.md and memory/*.md of OpenClaw, kept private: PATH is its workspace
mem0-export      the answer of get_all of mem0, saved as JSON: PATH is that file

Repeated, the command brings what is new since. Secrets are redacted. Everything is accounted for: brought, here
already, or left and why. Of more than {operations.MOST_ITEMS:,} things the newest come, unless --all. Nothing but PATH
is opened, a database read-only, and no link is followed.

Of Signet come removals, transcripts, summaries, memories, pins and entities; sessions that it removed are removed
here, after a question. Then its hooks and MCP servers are taken out of the settings of harnesses; all else there stays.
Beside a Signet daemon that still runs MEMORY.md and manifests are held back.

A backup is written before; `backup restore FILE --replace` goes back to its memories. Sessions that came are files.
"""


@click.command(cls=Command, help=_HELP, short_help="Bring over what another program remembers.")
@click.argument("program", type=click.Choice(["signet", *operations.READERS]), metavar="PROGRAM")
@click.argument("path", required=False)
@click.option("--dry-run", is_flag=True, help="Show the report; write nothing.")
@click.option("--all", "every", is_flag=True, help=f"Also more than {operations.MOST_ITEMS:,} things.")
@yes_option
@click.option("--accept-removals", is_flag=True, help="Also if Signet removed most of the sessions that are here.")
@now_option
@json_option
@pass_context
def migrate(
    context: Context, program: str, path: str | None, dry_run: bool, every: bool, yes: bool, accept_removals: bool
) -> int:
    require_root(context.root)
    if program == "signet":
        return _signet(context, path, dry_run, yes, accept_removals)
    if path is None:
        raise click.UsageError(f"migrate {program} needs a PATH")
    with _looking(context) if dry_run else context.opened(lasting=True) as workspace:
        found = operations.bring(workspace, program, path, context.now_us, write=not dry_run, every=every)
    context.answer(found.document(), lambda: _show(context, found))
    return 0


def _signet(context: Context, place: str | None, dry_run: bool, yes: bool, accept_removals: bool) -> int:
    path = databases.find_database(context.root, place)
    hooks = signet_admin.there()

    def show_hooks() -> None:
        for line in hooks:
            click.echo(display(f"  {line}"), err=not dry_run)

    def ask(number: int) -> None:
        confirm(context, f"Remove {count_noun(number, 'session')} that Signet removed?", yes=yes)

    if hooks and not dry_run:
        confirm(context, "Bring Signet's memory over, and take these out?", yes=yes, listing=show_hooks)
    with _looking(context) if dry_run else context.opened(lasting=True) as workspace:
        found = operations.migrate(
            workspace, path, context.now_us, write=not dry_run, confirm=ask, accept_removals=accept_removals
        )
    out = signet_admin.TakenOut() if dry_run else signet_admin.take_out(context.root)

    def show() -> None:
        _show(context, found)
        if dry_run and hooks:
            click.echo("Would take out:")
            show_hooks()
        for line in out.done:
            click.echo(display(line))
        for line in out.failed:
            click.secho(display(line), fg="red")
        show_by_hand([display(line) for line in out.by_hand])

    context.answer(found.document() | out.document(), show)
    return 1 if out.failed else 0


@contextmanager
def _looking(context: Context) -> Iterator[Workspace]:
    """Opens the workspace to read; without an index, with one of its files in memory."""
    settings, place = context.settings(), context.place()
    try:
        database = Database(place.database, readonly=True)
    except (FileNotFoundError, DatabaseError):
        with (
            TemporaryDirectory() as elsewhere,
            open_to_write(context.root, settings, database=":memory:", touch_nothing=True) as workspace,
        ):
            workspace.state = StateFolder(elsewhere, "")
            engine.index_paths(workspace, Request(now_us=context.now_us, project=False))
            yield workspace
        return
    try:
        yield Workspace(context.root, settings, context.state(), database, touch_nothing=True)
    finally:
        database.connection.close()


def _show(context: Context, found: Report) -> None:
    did = ("Would bring from" if found.dry_run else "Brought from") if found.is_new else "Nothing new in"
    click.echo(f"{did} {display(found.place)}:")
    for line in found.lines():
        click.echo(display(line))
    show_redactions(found.redactions)
    if found.backup:
        going = context.command_line(f"backup restore {shlex.quote(found.backup)} --replace")
        click.echo(display(f"To go back to the memories of before: {going}"))
