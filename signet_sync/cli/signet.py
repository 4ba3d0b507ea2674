"""`signet`: decides who writes the pages of a workspace that Signet uses, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, confirm, json_option, now_option, pass_context, show_by_hand, yes_option
from signet_sync.cli.parsing import Group
from signet_sync.formats.paths import display

if TYPE_CHECKING:
    from signet_sync.admin.signet import Chosen, SignetStatus

_OWNERS = {
    "signet": "Signet (projection.yield)",
    "signet-sync": "signet-sync (projection.takeover)",
    "undecided": "signet-sync, but not while a Signet daemon runs here",
}


@click.group(cls=Group)
def signet() -> None:
    """Choose who writes MEMORY.md beside Signet."""


@signet.command("status")
@json_option
@pass_context
def status_(context: Context) -> int:
    """Show who owns the pages, whether Signet's daemon runs, and which harnesses feed Signet, us, or both."""
    found = _status(context, reading=True)
    context.answer(_status_document(found), lambda: _show_status(context, found))
    return 0


@signet.command()
@yes_option
@click.option("--dry-run", is_flag=True, help="Show what would be done; write nothing.")
@click.option("--undo", is_flag=True, help="Put Signet's hooks and servers back and decide nothing.")
@now_option
@json_option
@pass_context
def takeover(context: Context, yes: bool, dry_run: bool, undo: bool) -> int:
    """Write the pages ourselves, and take Signet's hooks and MCP servers out of the harnesses.

    Nothing else in the settings of harnesses changes, and --undo (or yield) puts both back: to the byte if the
    files have not changed since. Signet's MEMORY.md is kept as MEMORY.signet-<utc>.md; what you wrote above or below
    its text, and what stood around ours before Signet replaced it, is put back around our block. Texts of manifests
    that Signet replaced are restored. The decision is written into signet-sync.toml (projection.takeover).
    """
    from signet_sync.admin import signet as chooser  # imports the pass, which the help has no use for

    found = _status(context, reading=dry_run)

    def preview() -> None:
        _show_plan(found, undo=undo, err=False)
        click.echo("nothing was done (--dry-run)")

    if dry_run:
        context.answer({"dry_run": True, **_status_document(found)}, preview)
        return 0
    question = "put Signet's hooks and servers back?" if undo else "take the pages over from Signet?"
    confirm(context, question, yes=yes, listing=lambda: _show_plan(found, undo=undo))
    if undo:
        done = chooser.undo(context.root, context.now_us, database=context.chosen_database)
    else:
        settings, instant = context.settings(), context.now_us
        done = chooser.take_over(context.root, settings, instant, database=context.chosen_database)
    return _answer(context, done)


@signet.command("yield")
@yes_option
@now_option
@json_option
@pass_context
def yield_(context: Context, yes: bool) -> int:
    """Leave MEMORY.md and manifests to Signet, and write no page; indexing, search and check go on.

    ledger/ and DREAMS.md are withdrawn; takeover writes them again. MEMORY.md stays until Signet replaces it, with all
    that is in it, so what you wrote around our block is kept as MEMORY.user-<utc>.md. Hooks of Signet that takeover
    took out are put back. The decision is written into signet-sync.toml (projection.yield).
    """
    from signet_sync.admin import signet as chooser  # as above

    confirm(context, "leave the pages to Signet, and withdraw ledger/ and DREAMS.md?", yes=yes)
    settings, instant = context.settings(), context.now_us
    return _answer(context, chooser.leave(context.root, settings, instant, database=context.chosen_database))


def _status(context: Context, *, reading: bool) -> SignetStatus:
    from signet_sync.admin import signet as chooser  # as above
    from signet_sync.sync.read_only import require_index

    if reading:
        require_index(context.place())
    with context.opened(touch_nothing=True) as workspace:
        return chooser.status(workspace)


def _status_document(found: SignetStatus) -> dict[str, Any]:
    return {
        "owner": found.owner,
        "held": found.held or None,
        "daemon": found.pid,
        "database": found.database,
        "pages": dict(found.pages),
        "hooks": [
            {"harness": one.harness, "path": one.path, "events": list(one.events), "trouble": one.trouble or None}
            for one in found.hooks
        ],
        "servers": [
            {
                "harness": one.harness,
                "path": one.path,
                "names": list(one.names),
                "by_hand": one.by_hand,
                "trouble": one.trouble or None,
            }
            for one in found.servers
        ],
        "plugins": list(found.plugins),
        "both": list(found.both),
        "taken_out": list(found.taken_out),
    }


def _show_status(context: Context, found: SignetStatus) -> None:
    click.echo(f"pages are written by: {_OWNERS[found.owner]}")
    if found.held:
        click.echo(f"  not written now: {display(found.held)}")
    click.echo(f"Signet's daemon: {f'runs (pid {found.pid})' if found.pid else 'does not run on this machine'}")
    click.echo(f"Signet's database: {found.database or 'none'}")
    for path, writer in found.pages.items():
        click.echo(display(f"  {path}: written by {writer}" if writer != "none" else f"  {path}: not there"))
    for one in found.hooks:
        click.echo(display(f"  {one.harness}: {one.trouble or 'calls Signet at ' + ', '.join(one.events)}  {one.path}"))
    for server in found.servers:
        names = server.trouble or f"MCP server of Signet: {', '.join(server.names)}"
        click.echo(display(f"  {server.harness}: {names}  {server.path}"))
    for path in found.plugins:
        click.echo(display(f"  plug-in of Signet: {path}"))
    for harness in found.both:
        click.secho(f"  {harness}: its sessions go to Signet and to signet-sync: each arrives twice", fg="yellow")
    if found.both or found.owner == "undecided":
        click.echo(f"to choose: {context.command_line('signet takeover')}  or  {context.command_line('signet yield')}")


def _show_plan(found: SignetStatus, *, undo: bool, err: bool = True) -> None:
    for one in found.hooks if not undo else ():
        if one.events:
            words = f"{one.harness}: Signet's hooks for {', '.join(one.events)} are taken out of {one.path}"
            click.echo(display(words), err=err)
            for command in dict.fromkeys(one.commands):
                click.echo(display(f"  {command}"), err=err)
    for server in found.servers if not undo else ():
        if server.names and not server.by_hand:
            names = ", ".join(server.names)
            click.echo(display(f"{server.harness}: MCP server {names} is taken out of {server.path}"), err=err)
    for harness in found.taken_out if undo else ():
        click.echo(f"{harness}: what was taken out of its settings is put back", err=err)
    for path, writer in found.pages.items():
        if writer == "signet" and not undo:
            click.echo(display(f"{path}: Signet's page is kept beside it, and ours is written"), err=err)


def _answer(context: Context, done: Chosen) -> int:
    document = {
        "owner": done.owner,
        "hooks": done.hooks,
        "servers": done.servers,
        "pages": done.pages,
        "manifests": done.manifests,
        "by_hand": done.by_hand,
        "failed": done.failed,
    }

    def show() -> None:
        click.echo(f"pages are written by: {_OWNERS[done.owner]}")
        what = "are taken out" if done.owner == "signet-sync" else "are back"
        for harness in done.hooks:
            click.echo(f"  {harness}: Signet's hooks {what}")
        for harness in done.servers:
            click.echo(f"  {harness}: Signet's MCP servers {what}")
        for path in done.pages:
            click.echo(display(f"  {path}: {'taken over' if done.owner == 'signet-sync' else 'withdrawn'}"))
        if done.manifests:
            click.echo(f"  manifests whose text is back: {len(done.manifests)}")
        for line in done.kept:
            click.echo(display(f"  {line}"))
        for line in done.failed:
            click.secho(display(f"  {line}"), fg="red")
        show_by_hand([display(line) for line in done.by_hand])
        if done.owner == "signet-sync":
            click.echo(f"to undo: {context.command_line('signet takeover --undo')}")

    context.answer(document, show)
    return 1 if done.failed else 0
