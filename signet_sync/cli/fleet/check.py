"""`fleet check`: prints what is wrong in many workspaces; only reads them."""

from __future__ import annotations

import click

from signet_sync.cli.main import Context, emit, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command


@click.command(cls=Command)
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True)
@now_option
@json_option
@pass_context
def check(context: Context, targets: tuple[str, ...]) -> int:
    """Validate every file of many workspaces. Exit 1 if one has a problem or cannot be read."""
    from signet_sync.fleet import check as fleet_check  # with the pass, which other commands do not need
    from signet_sync.fleet.engines import Engine

    document = fleet_check.check(targets, Engine("local"), context.now_us)
    if context.as_json:
        emit(document)
    return 1 if document["problems"] or document["unreachable"] else 0
