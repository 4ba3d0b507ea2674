"""`telemetry`: access counters, shown and reset; only this command resets them."""

from __future__ import annotations

import click

from signet_sync.cli import Context, agreed, emit, json_option, pass_context
from signet_sync.cli.search import database_for_reading


@click.group()
def telemetry() -> None:
    """Access counters: show or reset."""


@telemetry.command()
@click.option("--agent", metavar="ID", help="Only this agent.")
@json_option
@pass_context
def show(context: Context, agent: str | None, as_json: bool) -> int:
    """How often each artifact was found or opened, and when last."""
    from signet_sync.index import telemetry as door

    with database_for_reading(context) as database:
        rows = door.accesses(database, agent)
    if as_json:
        keys = ("agent_id", "path", "accesses", "last_accessed_at")
        emit({"accesses": [dict(zip(keys, row, strict=True)) for row in rows]})
        return 0
    if not rows:
        click.echo("nothing was searched or opened yet")
    for agent_id, path, count, last in rows[:50]:
        click.echo(f"{count:6}  {last}  {agent_id}  {path}")
    return 0


@telemetry.command()
@click.option("--agent", metavar="ID", help="Only this agent.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@pass_context
def reset(context: Context, agent: str | None, yes: bool, as_json: bool) -> int:
    """Forget the counters."""
    from signet_sync.agent.workspace import opened
    from signet_sync.index import telemetry as door

    agreed("forget all access counters?", yes=yes, as_json=as_json)
    with opened(context.root, context.settings(), database=context.chosen_database) as workspace:
        count = door.reset(workspace.database, agent)
    if as_json:
        emit({"reset": count})
    else:
        click.echo(f"{count} counters forgotten")
    return 0
