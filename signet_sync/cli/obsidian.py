"""`obsidian`: sets up the workspace as a vault of Obsidian."""

from __future__ import annotations

import click

from signet_sync.admin import obsidian as vault
from signet_sync.cli.main import Context, confirm, json_option, pass_context, yes_option
from signet_sync.cli.parsing import Command
from signet_sync.storage import state_dir
from signet_sync.storage.safe_paths import require_root


@click.command(cls=Command)
@click.option("--dry-run", is_flag=True, help="Show what is missing; write nothing.")
@yes_option
@json_option
@pass_context
def obsidian(context: Context, dry_run: bool, yes: bool) -> int:
    """Write what a vault needs for Obsidian, after showing it; your other settings stay.

    Sealed sessions leave search and graph (Excluded files, a filter of the graph), links in them are not rewritten,
    and Memory.base has views of sessions and entities. Nothing of Obsidian's is changed unless you run this.
    """
    require_root(context.root)
    edits = vault.plan(context.root)

    def show() -> None:
        for edit in edits:
            click.echo(f"  {edit.path}: {'; '.join(edit.changes) or 'views of sessions and entities'}")

    if edits and not dry_run:
        confirm(context, "write this?", yes=yes, listing=show)
        with state_dir.workspace_lock(context.state()):
            edits = vault.setup(context.root)

    def answer() -> None:
        show()
        if not edits:
            click.echo("nothing to change")
        elif not dry_run:
            click.echo("Obsidian is open? Run Reload app without saving from its command palette.")

    document = {
        "dry_run": dry_run,
        "files": [{"path": edit.path, "created": edit.before is None, "set": list(edit.changes)} for edit in edits],
    }
    context.answer(document, answer)
    return 0
