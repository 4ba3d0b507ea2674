"""`fleet check`: prints what is wrong in many workspaces; only reads them."""

from __future__ import annotations

import shlex
from functools import partial
from itertools import groupby
from typing import Any

import click

from signet_sync.cli.fleet.options import over_workspaces
from signet_sync.cli.main import Context, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.cli.reindex import progress_bar, show_problems
from signet_sync.fleet.engines import Engine
from signet_sync.formats.paths import display
from signet_sync.text.phrases import counted

# So many workspaces are shown, and so many problems of each.
_WORKSPACES = 40
_PROBLEMS = 10


@click.command(cls=Command)
@over_workspaces
@now_option
@json_option
@pass_context
def check(context: Context, targets: tuple[str, ...], engine: Engine) -> int:
    """Validate every file of many workspaces, as check does. Exit 1 if one has a problem or cannot be read."""
    from signet_sync.fleet import check as fleet_check  # with the pass, which other commands do not need

    with progress_bar("checking", show=not context.as_json and not context.quiet) as advance:
        checked = fleet_check.check(targets, engine, context.now_us, advance)
    if checked.empty:
        more = f" and {len(checked.empty) - 1} more" if len(checked.empty) > 1 else ""
        context.say(f"warning: there is no artifact in memory/ of {display(checked.empty[0])}{more}")
    context.answer(checked.document, partial(_show, checked.document, ok=checked.ok))
    return 0 if checked.ok else 1


def _show(document: dict[str, Any], *, ok: bool) -> None:
    counts = document["counts"]
    click.echo(
        f"{counted(document['workspaces'], 'workspace')} · {counts['indexed']} valid · {counts['invalid']} invalid"
        f" · {counted(counts['violation'], 'violation')} · {counts['tombstoned']} should be gone"
        f" · {counts['ignored']} ignored"
    )
    wrong = [problem for problem in document["problems"] if problem["verdict"] != "ignored"]
    by_workspace = [(name, list(found)) for name, found in groupby(wrong, key=lambda one: one["workspace"])]
    for name, found in by_workspace[:_WORKSPACES]:
        click.secho(display(name), bold=True)
        show_problems([_for_workspace(problem, name) for problem in found], [], limit=_PROBLEMS)
    if len(by_workspace) > _WORKSPACES:
        click.echo(f"… and {len(by_workspace) - _WORKSPACES} more workspaces with problems (--json lists them all)")
    for one in document["unreachable"][:_WORKSPACES]:
        click.echo(
            click.style("unreachable", fg="red") + f"  {display(one['workspace'])}\n    {display(one['message'])}"
        )
    if len(document["unreachable"]) > _WORKSPACES:
        click.echo(f"… and {len(document['unreachable']) - _WORKSPACES} more (--json lists them all)")
    click.secho("ok" if ok else "not ok", fg="green" if ok else "red", bold=True)


def _for_workspace(problem: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns a problem whose remedy can be pasted into a shell, if the workspace is a folder."""
    if "://" in name:
        return problem
    return problem | {"hint": problem["hint"].replace("signet-sync ", f"signet-sync --workspace {shlex.quote(name)} ")}
