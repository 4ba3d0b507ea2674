"""`graph`: prints the temporal graph as a picture or as JSON."""

from __future__ import annotations

import click

from signet_sync.cli.main import Context, agent_option, emit, json_option, pass_context
from signet_sync.cli.parsing import Command, RenamedOption
from signet_sync.graph import picture
from signet_sync.graph.store import subgraph
from signet_sync.recall.store import references
from signet_sync.sync.read_only import reading


@click.command(cls=Command)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["mermaid", "dot", "json"]),
    default="mermaid",
    show_default=True,
    help="Output.",
)
@click.option(
    "--project",
    cls=RenamedOption,
    former="--thread",
    metavar="HANDLE",
    help="Only one project: its handle or key, or the handle of anything in it.",
)
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=40, show_default=True, help="Most elements, the newest first."
)
@agent_option
@json_option
@pass_context
def graph(context: Context, format_: str, project: str | None, limit: int) -> int:
    """Draw how projects, quarters, weeks, sessions and pieces of transcripts are connected."""
    with reading(context.place()) as database:
        chosen = None if project is None else references.thread_behind(database, context.agent, project)
        drawn = subgraph.read_picture(database, context.agent, chosen, limit)
    if context.as_json or format_ == "json":
        emit(picture.values(drawn))
    else:
        text = picture.DRAWN[format_](drawn)
        click.echo(text)
        if format_ == "mermaid" and not picture.drawable(drawn, text):
            context.say("GitHub does not draw graphs of this size: use --project or a smaller --limit")
    if drawn.left_out:
        shown = len(drawn.nodes)
        context.say(f"showing the newest {shown} elements; {drawn.left_out} older ones are left out (--limit)")
    elif not drawn.nodes:
        context.say("no sessions yet")
    return 0
