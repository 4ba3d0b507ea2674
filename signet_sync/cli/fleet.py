"""`fleet …`: checks, indexes, searches and reports on many workspaces, which it only reads."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial, wraps
from itertools import groupby
from typing import Any, TypeVar

import click

from signet_sync.cli.main import Context, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command, Group, Moment, SharedOption
from signet_sync.cli.reindex import progress_bar, show_problems
from signet_sync.fleet.engines import Engine
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import local_day
from signet_sync.text.phrases import counted, human

_Command = TypeVar("_Command", bound="Callable[..., Any]")
_MOST = 40  # workspaces that are shown


def over_workspaces(command: _Command) -> _Command:
    """Adds TARGET... and the options of the engine to a command, which gets them as `targets` and `engine`."""

    @wraps(command)
    def called(*given: Any, engine: str, address: str | None, workers: int | None, **more: Any) -> Any:
        if address is not None and engine != "ray":
            raise click.UsageError("--address is of a Ray cluster: use it with --engine ray")
        return command(*given, engine=Engine(engine, address, workers), **more)

    called.__doc__ = f"{command.__doc__}\n\n    TARGET: a folder, a URL or a glob of them, or @FILE."
    for add in (
        click.argument("targets", type=click.Path(readable=False), metavar="TARGET...", nargs=-1, required=True),
        click.option("--workers", type=click.IntRange(1), metavar="N", help="Workspaces at a time."),
        click.option("--address", metavar="HOST:PORT", help="A Ray cluster (default: this machine)."),
        click.option(
            "--engine", type=click.Choice(["ray", "local"]), default="ray", help="Ray (default) or processes."
        ),
    ):
        called = add(called)
    return called  # type: ignore[return-value]


_HELP = """Check, index, search and report on many workspaces.

\b
TARGET  a workspace: a folder, or a URL (s3://, git://, zip:// and what else fsspec reads);
        a glob of them; or @FILE with one on each line

See docs/fleet.md.
"""


@click.group(cls=Group, help=_HELP, short_help="Check, index, search and report on many workspaces.")
def fleet() -> None:
    pass


@fleet.command(cls=Command)
@over_workspaces
@now_option
@json_option
@pass_context
def check(context: Context, targets: tuple[str, ...], engine: Engine) -> int:
    """Validate every file of many workspaces, as check does. Exit 1 if one has a problem or cannot be read."""
    from signet_sync.fleet import check as fleet_check  # with the pass, which other commands do not need
    from signet_sync.sync.index_records import PROBLEMS

    with progress_bar("checking", show=not context.as_json and not context.quiet) as advance:
        document = fleet_check.check(targets, engine, context.now_us, advance)
    if not document["counts"]["scanned"]:  # the folder may be the one above the workspaces
        context.say("warning: there is no artifact in memory/ of any of these workspaces")
    ok = not document["unreachable"] and all(one["verdict"] not in PROBLEMS for one in document["problems"])
    context.answer(document, partial(_show_check, document, ok=ok))
    return 0 if ok else 1


def _show_check(document: dict[str, Any], *, ok: bool) -> None:
    counts = document["counts"]
    click.echo(
        f"{counted(document['workspaces'], 'workspace')} · {counts['indexed']} valid · {counts['invalid']} invalid"
        f" · {counted(counts['violation'], 'violation')} · {counts['tombstoned']} should be gone"
        f" · {counts['ignored']} ignored"
    )
    wrong = [problem for problem in document["problems"] if problem["verdict"] != "ignored"]
    by_workspace = [(name, list(found)) for name, found in groupby(wrong, key=lambda one: one["workspace"])]
    for name, found in by_workspace[:_MOST]:
        click.secho(display(name), bold=True)
        own = f"signet-sync --workspace {shlex.quote(name)} "  # a remedy can be pasted, if the workspace is a folder
        for one in found if "://" not in name else ():
            one["hint"] = one["hint"].replace("signet-sync ", own)
        show_problems(found, [], limit=10)
    if len(by_workspace) > _MOST:
        click.echo(f"… and {len(by_workspace) - _MOST} more workspaces with problems (--json lists them all)")
    _show_unreachable(document)
    click.secho("ok" if ok else "not ok", fg="green" if ok else "red", bold=True)


def _show_unreachable(document: dict[str, Any]) -> None:
    for one in document["unreachable"][:_MOST]:
        click.echo(click.style("unreachable", fg="red") + f"  {display(one['workspace'])}")
        click.echo(f"    {display(one['message'])}")
    if len(document["unreachable"]) > _MOST:
        click.echo(f"… and {len(document['unreachable']) - _MOST} more (--json lists them all)")


@fleet.command(cls=Command)
@over_workspaces
@click.option("--tables", type=click.Path(), metavar="PLACE", required=True, help="The tables: a folder or a URL.")
@click.option("--bodies", is_flag=True, help="With the sanitized text of artifacts, which search then covers.")
@click.option("--prune", is_flag=True, help="Delete the rows of workspaces that no TARGET names.")
@now_option
@json_option
@pass_context
def index(context: Context, targets: tuple[str, ...], engine: Engine, tables: str, bodies: bool, prune: bool) -> int:
    """Bring tables up to date with many workspaces. Exit 1 if one cannot be read; its rows stay.

    One that did not change is not read.
    """
    from signet_sync.fleet import index as fleet_index  # with the pass, which other commands do not need

    with progress_bar("indexing", show=not context.as_json and not context.quiet) as advance:
        document = fleet_index.index(
            targets, engine, context.now_us, place=tables, bodies=bodies, prune=prune, progress=advance
        )
    context.answer(document, partial(_show_index, context, document))
    return 1 if document["unreachable"] else 0


def _show_index(context: Context, document: dict[str, Any]) -> None:
    said = f"{counted(document['workspaces'], 'workspace')}: {document['indexed']} indexed"
    click.echo(f"{said}, {document['unchanged']} unchanged, {len(document['unreachable'])} unreachable")
    click.echo("  " + " · ".join(f"{rows:,} {table}" for table, rows in document["rows"].items()))
    if document["dropped"]:
        click.echo(f"  rows of {counted(document['dropped'], 'workspace')} deleted")
    _show_unreachable(document)


@fleet.command(cls=Command)
@click.argument("query")
@click.argument("targets", metavar="[TARGET]...", nargs=-1)
@click.option("--tables", type=click.Path(), metavar="PLACE", required=True, help="The tables: a folder or a URL.")
@click.option("--project", metavar="PROJECT", help="Only this project: its name, path or origin.")
@click.option("--agent", cls=SharedOption, metavar="ID", help="Only this agent.")
@click.option("--since", metavar="TIME", type=Moment(), help="Only sessions since this day or time, or so long: 3w.")
@click.option("--until", metavar="TIME", type=Moment(ends=True), help="Only sessions until then.")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Maximum number of hits.")
@json_option
@pass_context
def search(context: Context, /, query: str, targets: tuple[str, ...], tables: str, **wanted: Any) -> int:
    """Find sessions of many workspaces by their words, in tables.

    Those with all words of QUERY; if there are none, those with any of them. TARGETs limit the workspaces.
    """
    from signet_sync.fleet.search import search as search_tables  # with libraries that other commands do not need
    from signet_sync.fleet.store import Selection

    document = search_tables(query, targets, tables, Selection(**wanted))

    def show() -> None:
        if not document["hits"]:
            context.say("nothing found")
        for hit in document["hits"]:
            click.echo(click.style(display(hit["workspace"]), bold=True) + f"  {hit['path']}  {hit['day']}")
            click.echo(f"  {hit['sentence']}")
            if hit["snippet"]:
                click.echo(f"  {hit['snippet']}")

    context.answer(document, show)
    return 0


@fleet.command(cls=Command)
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
    context.answer(document, lambda: _show_report(document))
    return 0


def _show_report(document: dict[str, Any]) -> None:
    rows = [("", *"sessions files bytes last secrets changed back unreadable invalid".split())]
    total = {"workspace": counted(document["workspaces"], "workspace"), "last_session": None, **document["counts"]}
    for one in (*document["by_workspace"], total):
        last = local_day(one["last_session"] or "")
        wrong = [str(one[kind]) for kind in ("secret", "changed", "came-back", "unreadable", "invalid")]
        rows.append((one["workspace"], str(one["sessions"]), str(one["artifacts"]), human(one["bytes"]), last, *wrong))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *rest in rows:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        click.echo("  ".join((first.ljust(widths[0]), *cells)).rstrip())
    for one in document["by_rule"]:
        click.echo(f"{one['rule']}: {counted(one['files'], 'file')} in {counted(one['workspaces'], 'workspace')}")
    _show_unreachable(document)
