"""`fleet …`: shares rows with an organisation, asks those of all machines, checks many workspaces, removes sessions.

What it acts with is loaded in the functions: the pass, and libraries that other commands do not need.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import click

from signet_sync.cli.main import Context
from signet_sync.cli.parsing import Group, Moment, SharedOption, command
from signet_sync.cli.reindex import show_counts, show_problems
from signet_sync.errors import Halted, UsageError
from signet_sync.formats.paths import display
from signet_sync.text.phrases import count_noun

_MOST = 40  # workspaces that are shown
_AT = "Where shares are: a folder or a URL (default: the setting fleet.url)."

_HELP = """Share, ask, check and clean many workspaces.

\b
PLACE   where shares are: a folder, or a URL of fsspec (s3://, gs://, abfs://)
TARGET  a workspace: a folder, or a URL (s3://, git://, zip:// and what else fsspec reads);
        a glob of them; or @FILE with one on each line

See docs/fleet.md.
"""
fleet = Group("fleet", help=_HELP, short_help="Share, ask, check and clean many workspaces.")

_at = click.option("--at", "place", metavar="PLACE", type=click.Path(), help=_AT)
_at_several = click.option("--at", "places", metavar="PLACE", multiple=True, type=click.Path(), help=_AT)
_engine = click.option("--engine", type=click.Choice(["local", "ray"]), default="local", help="Processes, or Ray.")
_address = click.option("--address", metavar="HOST:PORT", help="A Ray cluster (default: this machine).")
_workers = click.option("--workers", type=click.IntRange(1), metavar="N", help="Workspaces at a time.")


def _choose_engine(engine: str, address: str | None, workers: int | None) -> dict[str, Any]:
    """Returns the options of the engine as `fleet.engines` takes them."""
    if address is not None and engine != "ray":
        raise click.UsageError("--address is of a Ray cluster: use it with --engine ray")
    return {"address": address or ("local" if engine == "ray" else None), "workers": workers}


def _choose_place(context: Context, given: str | None) -> str:
    """Returns the place that the command line or the person's own settings name; a workspace's file cannot."""
    if place := given or context.settings().fleet_url:
        return place
    hint = "give --at PLACE, or: signet-sync settings fleet.url PLACE"
    raise UsageError("no place for shares is named", hint=hint, code="no-place")


def _code(document: dict[str, Any]) -> int:
    return 1 if any(document["states"][state] for state in ("damaged", "vanished", "unreachable")) else 0


@command("--now", "--json", of=fleet)
@click.argument("targets", type=click.Path(readable=False), metavar="TARGET...", nargs=-1, required=True)
@_engine
@_address
@_workers
def check(context: Context, /, targets: tuple[str, ...], **engine: Any) -> int:
    """Validate every file of many workspaces, as check does. Exit 1 unless each is ok or empty.

    TARGET: a folder, a URL or a glob of them, or @FILE.
    """
    from signet_sync.fleet import engines

    chosen = _choose_engine(**engine)
    with context.progress("checking") as advance:
        document = engines.check(targets, context.now_us, advance, **chosen)

    def show() -> None:
        show_counts(document["counts"])
        wrong = [problem for problem in document["problems"] if problem["verdict"] != "ignored"]
        by_workspace = [(name, list(found)) for name, found in groupby(wrong, key=lambda one: one["workspace"])]
        for name, found in by_workspace[:_MOST]:
            click.secho(display(name), bold=True)
            show_problems(found, [], limit=10)
        _show_states(document)

    context.answer(document, show)
    return _code(document)


def _show_states(document: dict[str, Any]) -> None:
    """Prints how many matches have each state, and those that are not right."""
    wrong = [one for one in document["workspaces"] if one["state"] not in ("ok", "empty")]
    for one in wrong[:_MOST]:
        click.echo(click.style(one["state"], fg="red") + f"  {display(one['workspace'])}  {display(one['message'])}")
    if len(wrong) > _MOST:
        click.echo(f"… and {len(wrong) - _MOST} more (--json lists them all)")
    total = count_noun(len(document["workspaces"]), "workspace")
    click.echo(f"{total}: " + ", ".join(f"{count} {state}" for state, count in document["states"].items() if count))


@command("--now", "--json", of=fleet)
@click.argument("targets", type=click.Path(readable=False), metavar="[TARGET]...", nargs=-1)
@_at
@click.option("--holds", type=click.Choice(["rows", "text"]), help="Without text, or with it (setting fleet.holds).")
@click.option("--withdraw", is_flag=True, help="Delete this workspace's share.")
@click.option("--accept-removals", is_flag=True, help="Remove what is approved, however many sessions that is.")
@_engine
@_address
@_workers
def share(
    context: Context,
    /,
    targets: tuple[str, ...],
    place: str | None,
    holds: str | None,
    withdraw: bool,
    accept_removals: bool,
    **engine: Any,
) -> int:
    """Write this workspace's rows to where an organisation reads them; only what changed.

    The agent does so by itself if your own settings name the place (fleet.url); if they allow it (fleet.removals), it
    first removes the sessions that are approved there. With TARGETs, shares those workspaces by their files alone.
    """
    chosen, settings = _choose_engine(**engine), context.settings()
    url, holds = _choose_place(context, place), holds or settings.fleet_holds
    if targets:
        if withdraw or accept_removals:
            raise click.UsageError("--withdraw and --accept-removals are of this workspace: leave out TARGET")
        from signet_sync.fleet import engines

        with context.progress("sharing") as advance:
            document = engines.share_targets(targets, url, holds, context.now_us, advance, **chosen)
    else:
        from signet_sync.fleet import share as fleet_share

        enforces = settings.fleet_removals and url == settings.fleet_url
        document = fleet_share.share_own(
            context.place(), url, holds, context.now_us, enforces=enforces, accept=accept_removals, withdraw=withdraw
        )
    removals = document.get("removals") or {}
    if halted := removals.get("halted"):
        message = f"{halted} sessions are to be removed at once; none was, the rows were shared"
        accepting = context.command_line("fleet share --accept-removals")
        raise Halted(message, path=url, hint=f"fleet remove lists them; then: {accepting}")

    def show() -> None:
        for one in document["workspaces"] if len(document["workspaces"]) < _MOST else ():
            click.echo(f"{one['shared'] or one['state']}  {display(one['workspace'])}")
        for token, done in (removals.get("tokens") or {}).items():
            click.echo(f"  {token}: {done}")
        _show_states(document)

    context.answer(document, show)
    return _code(document)


@command("--json", of=fleet)
@click.argument("query")
@_at_several
@click.option("--project", metavar="PROJECT", help="Only this project: its name, path or origin.")
@click.option("--agent", cls=SharedOption, field="agent_flag", metavar="ID", help="Only this agent.")
@click.option("--since", metavar="TIME", type=Moment(), help="Only sessions since this day or time, or so long: 3w.")
@click.option("--until", metavar="TIME", type=Moment(ends=True), help="Only sessions until then.")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Maximum number of hits.")
def search(context: Context, /, query: str, places: tuple[str, ...], **wanted: Any) -> int:
    """Find sessions of all machines by their words; of shares without text, by project.

    Those with all words of QUERY; if there are none, those with most of them. Exit 1 if a share cannot be read.
    """
    from signet_sync.fleet.query import search as search_shares

    document = search_shares(query, places or [_choose_place(context, None)], agent=context.agent_flag, **wanted)

    def show() -> None:
        if not document["hits"]:
            context.say("nothing found")
        for hit in document["hits"]:
            click.echo(click.style(display(hit["workspace"]), bold=True) + f"  {display(hit['path'])}  {hit['day']}")
            for line in filter(None, (hit["sentence"] or hit["project"], hit["snippet"])):
                click.echo(f"  {display(line)}")
        _show_states(document)

    context.answer(document, show)
    return _code(document)


@command("--json", of=fleet)
@_at_several
@click.option("--sql", metavar="QUERY", help="Ask this of the tables shares, sessions, statements and files.")
def report(context: Context, places: tuple[str, ...], sql: str | None) -> int:
    """Report what all machines share: sessions, problems, secrets, blockers. Exit 1 if a share cannot be read."""
    from signet_sync.fleet.query import report as report_shares

    document = report_shares(places or [_choose_place(context, None)], sql)

    def show() -> None:
        rows = [document["columns"], *([str("" if one is None else one) for one in row] for row in document["rows"])]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        _show_states(document)

    context.answer(document, show)
    return _code(document)


@command("--yes", "--agent", "--now", "--json", of=fleet)
@click.argument("tokens", metavar="[SESSION]...", nargs=-1)
@_at
@click.option("--reason", help="Why; recorded in every tombstone.  [required with SESSION]")
@click.option("--undo", is_flag=True, help="Take sessions off the list; what was removed stays removed.")
def remove(
    context: Context, tokens: tuple[str, ...], place: str | None, reason: str | None, undo: bool, yes: bool
) -> int:
    """Approve that sessions are removed on every machine, and show who has not. Exit 1 while somebody has not.

    SESSION: the 16 characters by which a session's files are called; all sessions of it go, for good.
    """
    from signet_sync.fleet import removals
    from signet_sync.fleet.tables import Tables

    tables = Tables(_choose_place(context, place))
    if tokens and not undo:
        if not (reason or "").strip():
            raise click.UsageError("--reason is required; it is recorded in every tombstone")
        context.confirm(f"remove {count_noun(len(tokens), 'token')} of every machine for good?", yes=yes)
    removals.approve(tables, context.agent, tokens, reason or "", context.now_us, undo=undo)
    document = removals.answers(tables)

    def show() -> None:
        for one in document["approved"]:
            click.secho(f"{one['agent']}/{one['token']}  {one['at']}  {display(one['reason'])}", bold=True)
            click.echo(f"  {one['removed']} removed it, {one['absent']} never had it, {len(one['waiting'])} wait")
            for each in one["waiting"][:_MOST]:
                seen = f", shared {each['shared_at']}" if each["shared_at"] else ""
                click.echo(f"  {display(each['workspace'])}: {display(each['why'])}{display(seen)}")

    context.answer(document, show)
    return 1 if any(one["waiting"] for one in document["approved"]) else 0
