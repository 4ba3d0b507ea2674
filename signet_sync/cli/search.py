"""`search`: searches the full text of one agent's artifacts; any input is safe."""

from __future__ import annotations

import click

from signet_sync.cli.main import Context, agent_option, json_option, one_line, pass_context
from signet_sync.cli.parsing import Command, Moment
from signet_sync.formats.timestamps import local_day
from signet_sync.recall.store.search import search as search_artifacts
from signet_sync.sync.read_only import count_artifacts, reading
from signet_sync.sync.store import counts


@click.command(cls=Command)
@click.argument("query", nargs=-1, required=True)
@click.option("--kind", type=click.Choice(["summary", "transcript", "compaction", "manifest"]), help="Only this kind.")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Maximum number of hits.")
@click.option("--since", metavar="TIME", type=Moment(), help="Only sessions since this day or time, or so long: 3w.")
@click.option("--raw", is_flag=True, help="The query is FTS5 syntax, not plain words.")
@agent_option
@json_option
@pass_context
def search(context: Context, query: tuple[str, ...], kind: str | None, limit: int, since: int | None, raw: bool) -> int:
    """Find files of sessions that contain all of the words; if there are none, any of them."""
    words = " ".join(query)
    with reading(context.place()) as database:
        hits = search_artifacts(
            database, words, agent_id=context.agent, kind=kind, since_us=since, limit=limit, raw=raw
        )
        wrong = None if hits else counts.unknown(database, context.agent)
        count_artifacts(context.place(), [(hit.agent_id, hit.path) for hit in hits])

    def show() -> None:
        if not hits:
            context.say("nothing found" if wrong is None else f"nothing found: {one_line(wrong)}")
        for hit in hits:
            when = local_day(hit.ended_at or "")
            click.echo(click.style(hit.path, bold=True) + (f"  {when}" if when else ""))
            click.echo(f"  {hit.snippet}")

    context.answer({"query": words, "hits": [hit._asdict() for hit in hits]}, show)
    return 0
