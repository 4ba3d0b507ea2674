"""`fleet report`: says what is wrong and what is in many workspaces; only reads them."""

from __future__ import annotations

from typing import Any

import click

from signet_sync.cli.fleet.options import over_workspaces
from signet_sync.cli.main import Context, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.cli.reindex import progress_bar
from signet_sync.fleet.engines import Engine
from signet_sync.text.phrases import counted, human

_COLUMNS = ("sessions", "files", "bytes", "last session", "secrets", "changed", "back", "unreadable", "invalid")


@click.command(cls=Command)
@over_workspaces
@now_option
@json_option
@pass_context
def report(context: Context, /, targets: tuple[str, ...], engine: Engine) -> int:
    """Report secrets, changes and size of many workspaces.

    A secret is named by its rule and file, never by its value. Exit 0 whatever was found: fleet check is what fails.
    """
    from signet_sync.fleet.check import report as fleet_report  # with the pass, which other commands do not need

    with progress_bar("reading", show=not context.as_json and not context.quiet) as advance:
        document = fleet_report(targets, engine, context.now_us, advance)
    context.answer(document, lambda: _show(document))
    return 0


def _show(document: dict[str, Any]) -> None:
    rows = [("", *_COLUMNS)]
    total = {"workspace": counted(document["workspaces"], "workspace"), "last_session": None, **document["counts"]}
    for one in (*document["by_workspace"], total):
        last = (one["last_session"] or "")[:10]
        wrong = [str(one[kind]) for kind in ("secret", "changed", "came-back", "unreadable", "invalid")]
        rows.append((one["workspace"], str(one["sessions"]), str(one["artifacts"]), human(one["bytes"]), last, *wrong))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        click.echo("  ".join((first.ljust(widths[0]), *cells)).rstrip())
    for one in document["by_rule"]:
        click.echo(f"{one['rule']}: {counted(one['files'], 'file')} in {counted(one['workspaces'], 'workspace')}")
    for one in document["unreachable"]:
        click.echo(f"unreachable: {one['workspace']}: {one['message']}")
