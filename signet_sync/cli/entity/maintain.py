"""Implements the commands of `entity` for maintainers: what is wrong, settling it, and changing the schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import click

from signet_sync.cli.entity.write import ACTORS, KIND
from signet_sync.cli.main import Context, agent_option, confirm, json_option, now_option, pass_context, yes_option
from signet_sync.cli.parsing import Command, OfWorkspace
from signet_sync.formats.entity_paths import Kind
from signet_sync.formats.paths import display
from signet_sync.text.phrases import count_noun

if TYPE_CHECKING:
    from signet_sync.entities.events import Actor
    from signet_sync.entities.finding import Finding
    from signet_sync.entities.maintenance import Resolution


@click.command(cls=Command, short_help="Check entities and their event log; settle drift.")
@click.argument("ref", type=OfWorkspace(), metavar="[ID]", required=False)
@click.option("--log", "only_log", is_flag=True, help="Only the event log: is it as it was written?")
@click.option("--keep", type=click.Choice(["file", "events"]), help="Settle drift of ID: which of the two is right.")
@click.option("--actor", type=click.Choice(ACTORS), default="maintainer", show_default=True, help="Who settles it.")
@yes_option
@agent_option
@now_option
@json_option
@pass_context
def check(
    context: Context,
    ref: str | None,
    only_log: bool,
    keep: Literal["file", "events"] | None,
    actor: Actor,
    yes: bool,
) -> int:
    """Check an entity (without ID: all). Exit 1 if there are findings.

    The files against the schema and against their events, and the event log: no line changed, missing, moved or cut
    off. A file that drifted is not written to before --keep settles it, after showing what would change: with file it
    is made an entity file again and recorded, with events it is written again. The text that goes stays in the event
    log. Use the word ledger as ID if the event log itself lost its end.
    """
    from signet_sync.entities import queries

    if keep is not None:
        if ref is None or only_log:
            raise click.UsageError("--keep needs an ID")
        return _settle(context, ref, keep, actor, yes=yes)
    with context.opened(lasting=True) as workspace:
        found = queries.findings(workspace, context.agent, ref, only_log=only_log, now_us=context.now_us)

    def show() -> None:
        if found:
            _show(found)
        else:
            click.secho("no findings", fg="green")

    context.answer({"ok": not found, "findings": [one.document() for one in found]}, show)
    return 1 if found else 0


def _show(found: Sequence[Finding]) -> None:
    where = None
    for one in found:
        place = one.path or one.id
        if place != where:
            click.secho(display(place or "the event log"), bold=True)
            where = place
        click.echo("  " + click.style(one.code, fg="yellow") + f"  {one.message}")
        if one.hint:
            click.secho(f"    {one.hint}", dim=True)
    click.echo(count_noun(len(found), "finding"))


def _settle(context: Context, ref: str, keep: Literal["file", "events"], actor: Actor, *, yes: bool) -> int:
    from signet_sync.entities import maintenance

    with context.opened(lasting=True) as workspace:
        planned = maintenance.preview(workspace, context.agent, ref, keep, context.now_us)
        confirm(context, f"keep the {keep}?", yes=yes, listing=lambda: _show_plan(planned))
        done = maintenance.resolve(workspace, context.agent, ref, keep, actor=actor, now_us=context.now_us)

    def show() -> None:
        for one in done:
            click.echo(f"{'recorded as it is' if keep == 'file' else 'written from its events'}  {display(one.path)}")
            click.secho(f"  {one.token}", dim=True)

    for one in done:
        context.say(one.waiting)
    context.answer({"settled": [one.document() for one in done]}, show)
    return 0


def _show_plan(planned: Sequence[Resolution]) -> None:
    for one in planned:
        click.secho(f"{display(one.drift.path)}: {one.drift.message}", bold=True)
        for line in one.diff().split("\n")[2:]:
            click.secho(f"  {line}", fg={"+": "green", "-": "red"}.get(line[:1]))


@click.command(cls=Command, short_help="Turn a field of Extensions into a section.")
@click.argument("field")
@click.option("--kind", type=KIND, help="The entities' kind, if several kinds have the field.")
@click.option("--actor", type=click.Choice(ACTORS), required=True, help="Must be maintainer.")
@agent_option
@now_option
@json_option
@pass_context
def promote(context: Context, field: str, kind: Kind | None, actor: Actor) -> None:
    """Turn FIELD, a ### heading under Extensions, into a section of its kind, and move it there in every file."""
    from signet_sync.entities import maintenance

    with context.opened(lasting=True) as workspace:
        done = maintenance.promote(workspace, context.agent, field, kind, actor=actor, now_us=context.now_us)

    def show() -> None:
        click.echo(f"{done.heading} is a section of every {done.kind}, from schema version {done.schema_version} on")
        for path in done.migrated:
            click.echo(f"  {display(path)}")

    context.answer(done._asdict(), show)
