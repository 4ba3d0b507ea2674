"""`obsidian`: sets up the workspace as a vault of Obsidian, shows what was set up, and takes it back."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from signet_sync.admin import obsidian as vault
from signet_sync.admin import obsidian_names as names
from signet_sync.admin.obsidian import ObsidianPlan
from signet_sync.admin.obsidian_names import NamesPlan
from signet_sync.cli.hooks import difference
from signet_sync.cli.main import Context, confirm, json_option, now_option, pass_context, yes_option
from signet_sync.cli.parsing import Group
from signet_sync.formats.paths import display
from signet_sync.storage import state_dir
from signet_sync.storage.safe_paths import require_root

_RELOAD = "Obsidian is open? Reload it (command palette: Reload app without saving), so that it reads the settings."


@click.group(cls=Group)
def obsidian() -> None:
    """Set up the workspace as a vault of Obsidian. Nothing of Obsidian's is changed unless you ask for it here."""


@obsidian.command(short_help="Write settings, a Bases file and, if asked, the plugin.")
@click.option("--plugin/--no-plugin", default=None, help="Also install the plugin (default: ask; with --yes: no).")
@click.option(
    "--rename/--no-rename", default=None, help="Also call entity files as their title (default: ask; with --yes: no)."
)
@click.option(
    "--links/--no-links", default=None, help="With --rename: also change the links in your notes (default: ask)."
)
@click.option("--dry-run", is_flag=True, help="Show what would change as a diff; write nothing.")
@yes_option
@now_option
@json_option
@pass_context
def setup(
    context: Context, plugin: bool | None, rename: bool | None, links: bool | None, dry_run: bool, yes: bool
) -> int:
    """Write what a vault needs for Obsidian, after showing it: what exists otherwise stays, byte for byte.

    Sealed sessions leave search and graph (Excluded files, a filter of the graph), links in them are not rewritten,
    and Memory.base has views of sessions, decisions, blockers and entities; those of decisions and blockers show
    session notes, which are written with session_notes = true in section [obsidian] of signet-sync.toml. The plugin
    opens handles, shows what changed after it was sealed, and searches memory in a pane; it runs signet-sync, on the
    desktop only.

    --rename gives entity files of earlier versions (profile.md, notes.md) the names that new ones have (Jo.md); links
    in other entities follow, those in your own notes only if you agree. Sealed sessions are never changed; expand
    accepts the former paths.
    """
    require_root(context.root)
    asks = not (yes or dry_run or context.as_json) and sys.stdin.isatty()
    if plugin is None:
        plugin = asks and click.confirm("Also install the plugin into .obsidian/plugins?", err=True)
    state = context.state()
    coming = vault.plan_setup(context.root, state, plugin=plugin)
    if not dry_run and coming.changes:
        confirm(context, "write these files?", yes=yes, listing=lambda: _show_plan(coming))
        with state_dir.workspace_lock(state):
            coming = vault.setup(context.root, state, plugin=plugin)
    renamed = None
    if rename or (rename is None and asks):
        renamed = _names(context, dry_run=dry_run, yes=yes or rename is True, links=links, asks=asks)
    return _answer(context, coming, renamed, dry_run, lambda: _show_next(context, plugin))


@obsidian.command(short_help="Show what was set up, and whether it is still there.")
@json_option
@pass_context
def status(context: Context) -> int:
    """Show what was set up, file by file, and whether it still is: Obsidian writes its settings, too."""
    require_root(context.root)
    state = context.state()
    known = vault.record(state)
    gone = vault.missing(context.root, state)

    def show() -> None:
        if known.is_empty:
            click.echo(f"not set up; to do it: {context.command_line('obsidian setup')}")
        for path, condition in vault.conditions(context.root, state).items():
            click.echo(display(f"  {path}: {condition}"))
        if not known.is_empty:
            _show_notes(context)

    document = {"settings": sorted(known.settings), "files": sorted(known.files), "missing": gone}
    context.answer(document, show)
    return 1 if gone else 0


@obsidian.command(short_help="Take back what setup wrote.")
@click.option("--links/--no-links", default=None, help="Also change links in your notes back (default: ask).")
@click.option("--dry-run", is_flag=True, help="Show what would change as a diff; write nothing.")
@yes_option
@now_option
@json_option
@pass_context
def undo(context: Context, links: bool | None, dry_run: bool, yes: bool) -> int:
    """Take back what setup wrote: byte for byte, unless it changed since; then what you changed stays."""
    require_root(context.root)
    state = context.state()
    known = vault.record(state)
    coming = vault.plan_undo(context.root, state)
    asks = not (yes or dry_run or context.as_json) and sys.stdin.isatty()
    if not dry_run and not known.is_empty:
        confirm(context, "take this back?", yes=yes, listing=lambda: _show_plan(coming))
        with state_dir.workspace_lock(state):
            coming = vault.undo(context.root, state)
    renamed = None
    if known.entities:
        renamed = _names(context, dry_run=dry_run, yes=True, links=links, asks=asks, undo=True)
    return _answer(context, coming, renamed, dry_run, lambda: click.echo(_RELOAD))


def _names(
    context: Context, *, dry_run: bool, yes: bool, links: bool | None, asks: bool, undo: bool = False
) -> NamesPlan | None:
    """Renames entity files, after asking for them and for the notes that link them; None if nothing is renamed."""
    with context.opened(touch_nothing=dry_run) as workspace:
        coming = names.plan(workspace, undo=undo)
        if dry_run or not (coming.moves or coming.notes):
            return coming
        if asks and not yes:
            _show_names(coming)
            if not click.confirm("Rename these files?", err=True):
                return None
        if coming.notes and links is None:
            for edit in coming.notes if asks else ():
                click.echo(f"  {display(edit.path)}")
            links = asks and click.confirm("Also change the links in these notes of yours?", err=True)
        with state_dir.workspace_lock(workspace.state):
            return names.carry_out(workspace, context.now_us, links=bool(links), undo=undo)


def _answer(
    context: Context, plan: ObsidianPlan, renamed: NamesPlan | None, dry_run: bool, show_next: Callable[[], object]
) -> int:
    notes = list(renamed.notes) if renamed is not None else []

    def show() -> None:
        if dry_run:
            for edit in (*plan.changes, *notes):
                click.echo(difference(edit).encode("utf-8", "surrogateescape"), nl=False)
        else:
            _show_plan(plan)
        for line in plan.left:
            click.echo(f"  {line}")
        if renamed is not None:
            _show_names(renamed)
            for edit in notes:
                click.echo(f"  {display(edit.path)}: its links follow")
        if not plan.changes and (renamed is None or not renamed.moves):
            click.echo("nothing to change")
        elif not dry_run:
            show_next()

    moves = renamed.moves.items() if renamed is not None else ()
    document = {
        "dry_run": dry_run,
        "files": [{"path": edit.path, "change": edit.kind} for edit in plan.edits],
        "settings": {path: vault.in_words(marks) for path, marks in plan.marks.items()},
        "left": list(plan.left),
        "renamed": [{"from": f"{old}.md", "to": f"{new}.md"} for old, new in moves],
        "notes": [edit.path for edit in notes],
    }
    if dry_run:
        document["diff"] = "".join(map(difference, (*plan.changes, *notes)))
    context.answer(document, show)
    return 0


def _show_names(plan: NamesPlan) -> None:
    for old, new in plan.moves.items():
        click.echo(display(f"  {old}.md → {new.rpartition('/')[2]}.md"))


def _show_plan(plan: ObsidianPlan) -> None:
    for edit in plan.changes:
        what = vault.in_words(plan.marks.get(edit.path, ()))
        click.echo(f"  {edit.path}: {edit.kind}" + (f" ({'; '.join(what)})" if what else ""))


def _show_notes(context: Context) -> None:
    if not context.settings().session_notes:
        click.echo("Session notes are off, so Decisions and Blockers of Memory.base are empty. To have them,")
        click.echo(f"write into signet-sync.toml, then run {context.command_line('reindex')}:")
        click.echo("  [obsidian]\n  session_notes = true")


def _show_next(context: Context, plugin: bool) -> None:
    click.echo(_RELOAD)
    _show_notes(context)
    if plugin:
        click.echo("To enable the plugin: Settings, Community plugins, Turn on community plugins, signet-sync.")
    click.echo(f"to undo: {context.command_line('obsidian undo')}")
