"""`fleet index`: brings tables of verdicts, artifacts, sessions and facts up to date; only reads the workspaces."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from signet_sync.cli.fleet.options import over_workspaces
from signet_sync.cli.main import Context, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.cli.reindex import progress_bar
from signet_sync.fleet.engines import Engine
from signet_sync.formats.paths import display
from signet_sync.text.phrases import counted


@click.command(cls=Command)
@over_workspaces
@click.option("--tables", type=click.Path(), metavar="PLACE", required=True, help="The tables: a folder or a URL.")
@click.option("--bodies", is_flag=True, help="With the sanitized text of artifacts, which search then covers.")
@click.option("--prune", is_flag=True, help="Delete the rows of workspaces that no TARGET names.")
@now_option
@json_option
@pass_context
def index(
    context: Context,
    targets: tuple[str, ...],
    engine: Engine,
    tables: str,
    bodies: bool,
    prune: bool,
) -> int:
    """Bring tables up to date with many workspaces. Exit 1 if one cannot be read; its rows stay.

    One that did not change is not read.
    """
    from signet_sync.fleet import index as fleet_index  # with the pass, which other commands do not need

    with progress_bar("indexing", show=not context.as_json and not context.quiet) as advance:
        document = fleet_index.index(
            targets, engine, context.now_us, place=tables, bodies=bodies, prune=prune, progress=advance
        )
    context.answer(document, partial(_show, context, document))
    return 1 if document["unreachable"] else 0


def _show(context: Context, document: dict[str, Any]) -> None:
    said = f"{counted(document['workspaces'], 'workspace')}: {document['indexed']} indexed"
    click.echo(
        f"{said}, {document['unchanged']} unchanged, {len(document['unreachable'])} unreachable"
        + (" (their rows stay)" if document["unreachable"] else "")
    )
    click.echo("  " + " · ".join(f"{rows:,} {table}" for table, rows in document["rows"].items()))
    if document["dropped"]:
        click.echo(f"  rows of {counted(document['dropped'], 'workspace')} deleted")
    if document["redacted"]:
        click.secho(f"  {counted(document['redacted'], 'secret')} redacted that files still had", fg="yellow")
    for one in document["unreachable"]:
        click.echo("  " + click.style("unreachable", fg="red") + f"  {display(one['workspace'])}")
        click.echo(f"    {display(one['message'])}")
