"""`fleet search`: finds sessions of many workspaces in the tables that `fleet index` made."""

from __future__ import annotations

import click

from signet_sync.cli.main import Context, json_option, pass_context
from signet_sync.cli.parsing import Command, Moment, SharedOption
from signet_sync.formats.paths import display


@click.command(cls=Command)
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
def search(
    context: Context,
    query: str,
    targets: tuple[str, ...],
    tables: str,
    project: str | None,
    agent: str | None,
    since: int | None,
    until: int | None,
    limit: int,
) -> int:
    """Find sessions of many workspaces by their words, in tables.

    Those with all words of QUERY; if there are none, those with any of them. TARGETs limit the workspaces.
    """
    from signet_sync.fleet.search import Selection  # with libraries that other commands do not need
    from signet_sync.fleet.search import search as search_tables

    document = search_tables(query, targets, tables, Selection(project, agent, since, until, limit))

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
