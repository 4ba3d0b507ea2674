"""`telemetry`: shows and resets access counters; only this command resets them."""

from __future__ import annotations

import click

from signet_sync.cli.main import Context, confirm, json_option, pass_context, yes_option
from signet_sync.cli.parsing import Group, Named, SharedOption
from signet_sync.sync.read_only import reading
from signet_sync.sync.store import access_counts
from signet_sync.text.phrases import counted
from signet_sync.text.sentences import flatten

_SHOWN = 50
_agent = click.option(
    "--agent", cls=SharedOption, type=Named("agent"), metavar="ID", help="Only this agent (default: all agents)."
)


@click.group(cls=Group)
def telemetry() -> None:
    """Show or reset the access counters."""


@telemetry.command(short_help="Show how often files of sessions and handles were asked for.")
@_agent
@json_option
@pass_context
def show(context: Context, agent: str | None) -> int:
    """Show how often each file of a session was found or opened, each handle expanded, and when last."""
    with reading(context.place()) as database:
        rows = access_counts.accesses(database, agent)
        nodes = access_counts.node_accesses(database, agent)
    keys = ("agent_id", "path", "accesses", "last_accessed_at")

    def show_both() -> None:
        if not rows and not nodes:
            click.echo("nothing was searched, opened or recalled yet")
        for agent_id, path, count, last in rows[:_SHOWN]:
            click.echo(f"{count:6}  {last}  {agent_id}  {path}")
        for node in nodes[:_SHOWN]:
            what = flatten(node.label, 80) if node.label is not None else "(deleted)"
            click.echo(f"{node.accesses:6}  {node.last_day}{'':14}  {node.agent_id}  ^{node.id}  {what}")

    accesses = [dict(zip(keys, row, strict=True)) for row in rows]
    context.answer({"accesses": accesses, "nodes": [node._asdict() for node in nodes]}, show_both)
    return 0


@telemetry.command()
@_agent
@yes_option
@json_option
@pass_context
def reset(context: Context, agent: str | None, yes: bool) -> int:
    """Delete the counters. Pins stay."""
    confirm(context, "delete all access counters?", yes=yes)
    with context.opened() as workspace:
        count = access_counts.reset(workspace.database, agent)
    context.answer({"reset": count}, lambda: click.echo(f"deleted {counted(count, 'counter')}"))
    return 0
