"""`migrate`: brings over what another program remembers, reports every row, and takes it back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory

import click

from signet_sync.cli.main import (
    Context,
    confirm,
    json_option,
    now_option,
    open_to_write,
    pass_context,
    show_redactions,
    yes_option,
)
from signet_sync.cli.parsing import Group
from signet_sync.errors import DatabaseError, UsageError
from signet_sync.formats.paths import display
from signet_sync.migration import operations, other_programs, report, signet_database, undo
from signet_sync.migration.report import Report
from signet_sync.migration.undo import Undone
from signet_sync.storage.database.connection import Database
from signet_sync.storage.locations import StateFolder
from signet_sync.storage.safe_paths import require_root
from signet_sync.sync import engine
from signet_sync.sync.request import Request
from signet_sync.sync.workspace import Workspace
from signet_sync.text.phrases import counted

_SIGNET = """Bring over what Signet's database holds: removals, transcripts, summaries, memories, pins, entities.

\b
PATH is a memories.db, or the folder of a workspace that has one (default: this workspace). It is
opened read-only, also beside a running Signet.

Each thing comes once: repeated, the command brings what is new since. Secrets are redacted. Every row is accounted for:
brought, here already, or left and why. Sessions that Signet removed are removed here, after a question.

--undo takes back what came and nothing else: no removal is lifted.
"""


@click.group(cls=Group)
def migrate() -> None:
    """Bring over what another program remembers."""


@migrate.command(help=_SIGNET, short_help="Bring over what Signet remembers.")
@click.option("--from", "place", metavar="PATH", help="Signet's database, or its workspace.")
@click.option("--dry-run", is_flag=True, help="Show the report; write nothing.")
@click.option("--undo", "undone", is_flag=True, help="Take back what was brought.")
@yes_option
@click.option("--accept-removals", is_flag=True, help="Also if Signet removed most of the sessions that are here.")
@now_option
@json_option
@pass_context
def signet(context: Context, place: str | None, dry_run: bool, undone: bool, yes: bool, accept_removals: bool) -> None:
    if undone and (place is not None or accept_removals):
        raise UsageError("--undo takes neither --from nor --accept-removals", hint="it takes back all that was brought")
    if undone:
        _undo(context, dry_run=dry_run, yes=yes)
        return
    require_root(context.root)
    path = signet_database.find_database(context.root, place)
    if dry_run:
        with _looking(context) as workspace:
            found = operations.preview(workspace, path, context.now_us)
    else:

        def ask(number: int) -> None:
            confirm(context, f"Remove {counted(number, 'session')} that Signet removed?", yes=yes)

        with context.opened(lasting=True) as workspace:
            found = operations.migrate(workspace, path, context.now_us, confirm=ask, accept_removals=accept_removals)
    context.answer(found.document(), lambda: _show(found))


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
            copy = replace(workspace, state=StateFolder(elsewhere, ""))
            engine.index_paths(copy, Request(now_us=context.now_us, project=False))
            yield copy
        return
    try:
        yield Workspace(context.root, settings, context.state(), database, touch_nothing=True)
    finally:
        database.connection.close()


def _show(found: Report, program: str = "signet") -> None:
    did = ("Would bring from" if found.dry_run else "Brought from") if found.is_new else "Nothing new in"
    click.echo(f"{did} {display(found.place)}:")
    for line in report.lines(found):
        click.echo(display(line))
    show_redactions(found.redactions)
    if found.is_new and not found.dry_run:
        click.echo(f"To take it back: signet-sync migrate {program} --undo")


def _undo(context: Context, *, dry_run: bool, yes: bool) -> None:
    with _looking(context) if dry_run else context.opened(lasting=True) as workspace:
        found = undo.planned(workspace, context.now_us)
        if found.begun and not dry_run:
            confirm(context, "Take it back?", yes=yes, listing=lambda: _show_undone(found, dry_run=True))
            found = undo.undo(workspace, context.now_us)
    context.say(found.waiting)
    document = found.document() | {"dry_run": dry_run}
    context.answer(document, lambda: _show_undone(found, dry_run=dry_run))


def _show_undone(found: Undone, *, dry_run: bool) -> None:
    what = ", ".join(
        (
            counted(found.memories, "memory", "memories"),
            counted(len(found.artifacts), "artifact"),
            counted(found.proposals, "proposal"),
        )
    )
    click.echo(f"{'would take' if dry_run else 'took'} back: {what}")
    for path in found.kept:
        click.echo(f"  kept, because it was changed since: {display(path)}")


# ── other programs ──

_EVERY = """\
Each thing comes once: repeated, the command brings what is new since. Secrets are redacted. Everything is accounted
for: brought, here already, or left and why. Nothing but PATH is opened.

--undo takes back what came from it, and nothing else.
"""
_HELPS = {
    "claude-mem": """Bring over the observations and session summaries of claude-mem.

PATH is its claude-mem.db, or the folder that holds it. It is opened read-only, also beside a running claude-mem.
""",
    "basic-memory": """Bring over the observations and relations in notes of basic-memory.

PATH is a folder of notes, or one note. Links are not followed. Other text of the notes is left.
""",
    "openclaw-memory": """Bring over what OpenClaw remembers in MEMORY.md and memory/*.md.

PATH is its workspace, or one of the files. Links are not followed. What MEMORY.md says is kept private.
""",
    "mem0-export": """Bring over an export of mem0.

PATH is the answer of `get_all`, saved as JSON. Memories of a mem0 agent come to the agent of that name here.
""",
}


def _add(program: str) -> None:
    @migrate.command(program, help=f"{_HELPS[program]}\n{_EVERY}", short_help=_HELPS[program].partition("\n")[0])
    @click.argument("path", required=False, metavar="PATH")
    @click.option("--dry-run", is_flag=True, help="Show the report; write nothing.")
    @click.option("--undo", "undone", is_flag=True, help="Take back what was brought; without PATH.")
    @yes_option
    @now_option
    @json_option
    @pass_context
    def bring(context: Context, path: str | None, dry_run: bool, undone: bool, yes: bool) -> None:
        if undone == bool(path):
            what = "--undo takes no PATH" if undone else "PATH is missing"
            raise UsageError(what, hint=f"signet-sync migrate {program} PATH, or signet-sync migrate {program} --undo")
        if not path:
            _undo_memories(context, program, dry_run=dry_run, yes=yes)
            return
        require_root(context.root)
        with _looking(context) if dry_run else context.opened(lasting=True) as workspace:
            found = other_programs.bring(workspace, program, path, context.now_us, write=not dry_run)
        context.answer(found.document(), lambda: _show(found, program))


def _undo_memories(context: Context, program: str, *, dry_run: bool, yes: bool) -> None:
    with _looking(context) if dry_run else context.opened(lasting=True) as workspace:
        found = undo.planned_memories(workspace, program)
        if not dry_run and found.memories:
            confirm(context, "Take it back?", yes=yes, listing=lambda: _show_undone(found, dry_run=True))
            found = undo.undo_memories(workspace, program, context.now_us)
    context.say(found.waiting)
    context.answer(found.document() | {"dry_run": dry_run}, lambda: _show_undone(found, dry_run=dry_run))


for _program in other_programs.READERS:
    _add(_program)
