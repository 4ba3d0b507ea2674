"""`telemetry`: shows and resets access counters; only this command resets them."""

from __future__ import annotations

import click

from signet_sync.cli.main import Context, agreed, counted, emit, json_option, pass_context
from signet_sync.sync.read_only import reading
from signet_sync.text.sentences import flatten

_SHOWN = 50


@click.group()
def telemetry() -> None:
    """Access counters: show or reset."""


@telemetry.command(short_help="How often what was asked for.")
@click.option("--agent", metavar="ID", help="Only this agent.")
@json_option
@pass_context
def show(context: Context, agent: str | None, as_json: bool) -> int:
    """How often each artifact was found or opened, each node asked for, and when last."""
    from signet_sync.sync.store import access_counts

    with reading(context.place()) as database:
        rows = access_counts.accesses(database, agent)
        nodes = access_counts.node_accesses(database, agent)
    if as_json:
        keys = ("agent_id", "path", "accesses", "last_accessed_at")
        emit(
            {
                "accesses": [dict(zip(keys, row, strict=True)) for row in rows],
                "nodes": [node._asdict() for node in nodes],
            }
        )
        return 0
    if not rows and not nodes:
        click.echo("nothing was searched, opened or recalled yet")
    for agent_id, path, count, last in rows[:_SHOWN]:
        click.echo(f"{count:6}  {last}  {agent_id}  {path}")
    for node in nodes[:_SHOWN]:
        what = flatten(node.label, 80) if node.label is not None else "(gone)"
        click.echo(f"{node.accesses:6}  {node.last_day}{'':14}  {node.agent_id}  ^{node.id}  {what}")
    return 0


@telemetry.command()
@click.option("--agent", metavar="ID", help="Only this agent.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@pass_context
def reset(context: Context, agent: str | None, yes: bool, as_json: bool) -> int:
    """Forget the counters. Pins stay."""
    from signet_sync.app.workspace import opened
    from signet_sync.sync.store import access_counts

    agreed("forget all access counters?", yes=yes, as_json=as_json)
    with opened(context.root, context.settings(), database=context.chosen_database) as workspace:
        count = access_counts.reset(workspace.database, agent)
    if as_json:
        emit({"reset": count})
    else:
        click.echo(f"{counted(count, 'counter')} forgotten")
    return 0
