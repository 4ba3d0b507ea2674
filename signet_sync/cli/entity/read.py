"""Implements the commands of `entity` that read: files and events.

What reads them is loaded in the functions: completion does without.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.entity.write import KIND
from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command, OfWorkspace
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import Kind
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import local_day, local_minute

if TYPE_CHECKING:
    from signet_sync.entities.events import Event
    from signet_sync.entities.queries import EntityView, EventSource, Proposal, SectionView

_entity_or_all = click.argument("ref", type=OfWorkspace(), metavar="[ID]", required=False)


@click.command(cls=Command, short_help="Show an entity, or list all of them.")
@_entity_or_all
@click.option("--kind", type=KIND, help="List only entities of this kind.")
@agent_option
@now_option
@json_option
@pass_context
def show(context: Context, ref: str | None, kind: Kind | None) -> None:
    """Show an entity: its sections and notes, and what is pinned, locked and proposed. Without ID list all of them."""
    from signet_sync.entities import queries

    with context.opened(lasting=True) as workspace:
        if ref is not None:
            shown = queries.show(workspace, context.agent, ref, now_us=context.now_us)
            context.answer(shown.document(), lambda: _show(shown))
            return
        found = queries.listing(workspace, context.agent, kind=kind, now_us=context.now_us)

    def show_all() -> None:
        if not found:
            context.say("no entities yet; create one with: " + context.command_line('entity create user "NAME"'))
        for entity in found:
            what = ", ".join(filter(None, [entity.kind, entity.type]))
            status = "" if entity.status == "active" else f" · {entity.status}"
            click.echo(f"{click.style(entity.title, bold=True)}  ({what}{status})  {click.style(entity.id, dim=True)}")
            if entity.line:
                click.echo(f"  {entity.line}")

    context.answer({"entities": [entity.document() for entity in found]}, show_all)


def _show(shown: EntityView) -> None:
    click.secho(shown.title, bold=True)
    what = [shown.kind, *([shown.type] if shown.type else []), shown.status, shown.id]
    click.echo(f"  {' · '.join(what)}")
    click.secho(f"  {display(shown.path)}", dim=True)
    if shown.participants:
        click.echo(f"  between {' and '.join(shown.participants)}")
    if shown.drifted:
        click.secho("  one of its files drifted: see signet-sync entity check", fg="red")
    for what_kind, names in (("pinned", shown.pins), ("locked", shown.locks)):
        if names:
            click.echo(f"  {what_kind}: {', '.join('everything' if name == '*' else name for name in names)}")
    for section in shown.sections:
        _show_section(section)
    for proposal in shown.proposals:
        _show_proposal(proposal)
    empty = [section.name for section in shown.sections if not section.text.strip()]
    if empty:
        click.secho(f"\nempty: {', '.join(empty)}", dim=True)


def _show_section(section: SectionView) -> None:
    if not section.text.strip():
        return
    place = f"  ({section.name})" if section.name.startswith("notes/") else ""
    click.echo("\n" + click.style(section.heading, fg="cyan", bold=True) + click.style(place, dim=True))
    if section.items is None or not section.items:
        click.echo(_indented(section.text))
        return
    for item in section.items:
        click.echo(f"  {item.number}. " + item.text.replace("\n", "\n     "))


def _show_proposal(proposal: Proposal) -> None:
    would = {"set": "would become", "append": "would get the paragraph"}.get(proposal.op, "would get the item")
    click.echo("\n" + click.style(f"proposed: {proposal.section} {would}", fg="yellow", bold=True))
    click.echo(_indented(proposal.text))
    click.secho(f"  {local_day(proposal.at)} · entity review approve {proposal.id}", dim=True)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.strip("\n").split("\n"))


@click.command(cls=Command, short_help="List the events of an entity, with the text before and after.")
@_entity_or_all
@click.option("--limit", type=click.IntRange(0), default=0, help="Most events shown (default: all).")
@agent_option
@json_option
@pass_context
def log(context: Context, ref: str | None, limit: int) -> None:
    """List the events of an entity (without ID: of all), newest first, with the text before and after.

    entity undo takes one of them back.
    """
    from signet_sync.entities import queries

    with context.opened(lasting=True) as workspace:
        found = queries.log(workspace, context.agent, ref, limit=limit)

    def show_all() -> None:
        if not found:
            context.say("no events yet")
        for event in found:
            _show_event(event, with_id=ref is None)

    context.answer({"events": [event_document(event) for event in found]}, show_all)


def event_document(event: Event) -> dict[str, Any]:
    """Returns an event with the fields of its line in the log, and its token."""
    from signet_sync.entities.events import encode

    record: dict[str, Any] = json.loads(encode(event))
    return {**record, "token": event.token}


def _show_event(event: Event, *, with_id: bool) -> None:
    from signet_sync.entities.queries import describe_event, texts_of

    what = f"{event.entity_id or 'all'}  {describe_event(event)}" if with_id else describe_event(event)
    gone = click.style("  (its text was removed)", dim=True) if event.erased else ""
    click.echo(f"{local_minute(event.at)}  {event.actor:<10}  {what}{gone}")
    for label in ("reason", "rationale"):
        if event.said(label):
            click.echo(f"    {label}: {event.said(label)}")
    for name, (before, after) in texts_of(event).items():
        if name != event.section:
            click.echo(f"    {name}")
        for sign, colour, text in (("-", "red", before), ("+", "green", after)):
            for line in text.split("\n") if text.strip() else ():
                click.secho(f"    {sign} {line}".rstrip(), fg=colour)
    click.secho(f"    {event.token}", dim=True)


# ── ev:… ──


def show_source(context: Context, token: str, wanted: str | None) -> None:
    """Prints what `open ev:…` shows: a token's event, and the artifact's line that is its evidence."""
    from signet_sync.entities import queries

    with context.opened(lasting=True) as workspace:
        source = queries.source(workspace, context.agent, token)
    if wanted is not None:
        if source.path is None or not source.path.endswith(f"--{wanted}.md"):
            raise UsageError(f"the event has no {wanted} as evidence", hint="omit --path", code="no-such-file")
        click.echo(os.path.join(context.root, source.path))
    else:
        event = source.event
        document: dict[str, Any] = {"token": event.token, "event": event_document(event), "id": event.entity_id}
        document |= {"entity_path": source.entity_path, "path": source.path, "line": source.line}
        context.answer(document, lambda: _show_source(source))


def _show_source(source: EventSource) -> None:
    from signet_sync.entities.queries import describe_event

    event = source.event
    click.secho(event.token, bold=True)
    click.echo(f"  {event.at}  {event.actor}: {describe_event(event)}")
    click.echo(f"  {display(source.entity_path)}")
    if source.path is not None:
        line = f"#{source.line}" if source.line else ""
        click.echo(f"  evidence: {display(source.path)}{line}")
