"""Implements the commands of `entity` that read: files, events, and whether they agree.

What reads them is loaded in the functions: completion does without.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.entity.run import KIND
from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command, OfWorkspace
from signet_sync.errors import UsageError
from signet_sync.formats.entity_paths import Kind
from signet_sync.formats.handle import in_words
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import local_day, local_minute
from signet_sync.text.phrases import counted

if TYPE_CHECKING:
    from signet_sync.entities.event_log.events import Event
    from signet_sync.entities.results import (
        EntityFinding,
        EntitySummary,
        EntityView,
        EventSource,
        LoggedEvent,
        Proposal,
        SectionView,
    )

_entity = click.argument("ref", type=OfWorkspace(), metavar="ID")
_entity_or_all = click.argument("ref", type=OfWorkspace(), metavar="[ID]", required=False)


@click.command("list", cls=Command, short_help="List the entities of an agent.")
@click.option("--kind", type=KIND, help="Only entities of this kind.")
@agent_option
@now_option
@json_option
@pass_context
def list_(context: Context, kind: Kind | None) -> None:
    """List all entities of an agent, one line each."""
    from signet_sync.entities import reports

    with context.opened(lasting=True) as workspace:
        found = reports.listing(workspace, context.agent, kind=kind, now_us=context.now_us)

    def show_all() -> None:
        if not found:
            context.say("no entities yet; create one with: " + context.command_line('entity create user "NAME"'))
        for entity in found:
            _show_line(entity)

    context.answer({"entities": [entity._asdict() for entity in found]}, show_all)


def _show_line(entity: EntitySummary) -> None:
    what = ", ".join(filter(None, [in_words(entity.kind), entity.type]))
    status = "" if entity.status == "active" else f" · {entity.status}"
    click.echo(f"{click.style(entity.title, bold=True)}  ({what}{status})  {click.style(entity.id, dim=True)}")
    if entity.line:
        click.echo(f"  {entity.line}")


@click.command(cls=Command, short_help="Show an entity: its sections and notes.")
@_entity
@agent_option
@now_option
@json_option
@pass_context
def show(context: Context, ref: str) -> None:
    """Show an entity: its sections and notes, and what is pinned, locked and proposed."""
    from signet_sync.entities import reports

    with context.opened(lasting=True) as workspace:
        shown = reports.show(workspace, context.agent, ref, now_us=context.now_us)
    context.answer(shown.document(), lambda: _show(shown))


def _show(shown: EntityView) -> None:
    click.secho(shown.title, bold=True)
    what = [in_words(shown.kind), *([shown.type] if shown.type else []), shown.status, shown.id]
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
    would = "would become" if proposal.op == "set" else "would get the item"
    click.echo("\n" + click.style(f"proposed: {proposal.section} {would}", fg="yellow", bold=True))
    click.echo(_indented(proposal.text))
    click.secho(f"  {local_day(proposal.at)} · entity review approve {proposal.id}", dim=True)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.strip("\n").split("\n"))


@click.command(cls=Command, short_help="List the events of an entity.")
@_entity_or_all
@click.option("--limit", type=click.IntRange(0), default=0, help="Most events shown (default: all).")
@agent_option
@json_option
@pass_context
def log(context: Context, ref: str | None, limit: int) -> None:
    """List the events of an entity (without ID: of all), newest first."""
    from signet_sync.entities import reports

    with context.opened(lasting=True) as workspace:
        found = reports.log(workspace, context.agent, ref, limit=limit)

    def show_all() -> None:
        if not found:
            context.say("no events yet")
        for logged in found:
            _show_event(logged, with_id=ref is None)

    context.answer(
        {"ok": True, "findings": [], "events": [event_document(logged.event, logged.state) for logged in found]},
        show_all,
    )


def event_document(event: Event, state: str) -> dict[str, Any]:
    """Returns an event with the fields of its line in the log (without None and empty ones) and its resulting state."""
    from signet_sync.entities.event_log.events import encode

    record: dict[str, Any] = json.loads(encode(event))
    return {**record, "state": state}


def _show_event(logged: LoggedEvent, *, with_id: bool) -> None:
    from signet_sync.entities.queries import describe_event

    event = logged.event
    what = f"{event.entity_id or 'all'}  {describe_event(event)}" if with_id else describe_event(event)
    state = "" if logged.state == "committed" else click.style(f"  {logged.state}", fg="red")
    gone = click.style("  (its text was removed)", dim=True) if event.erased else ""
    click.echo(f"{local_minute(event.at)}  {event.actor:<10}  {what}{state}{gone}")
    for label, text in (("why", event.reason), ("cap", event.rationale)):
        if text:
            click.echo(f"    {label}: {text}")
    click.secho(f"    {event.token}", dim=True)


@click.command(cls=Command, short_help="Check entities and their event log.")
@_entity_or_all
@click.option("--log", "only_log", is_flag=True, help="Only the event log: is it as it was written?")
@agent_option
@now_option
@json_option
@pass_context
def check(context: Context, ref: str | None, only_log: bool) -> int:
    """Check an entity (without ID: all). Exit 1 if there are findings.

    The files against the schema and against their events, and the event log: no line changed, missing, moved or cut
    off. A file that drifted is not written to until a maintainer settles it by entity resolve.
    """
    from signet_sync.entities import reports

    with context.opened(lasting=True) as workspace:
        remarks = reports.verify(workspace, context.agent)
        if not only_log:
            remarks += reports.lint(workspace, context.agent, ref, now_us=context.now_us)
        if ref is not None and not only_log:
            remarks += reports.replay(workspace, context.agent, ref).findings
    return _answer_findings(context, remarks, "no findings")


def _answer_findings(context: Context, remarks: Sequence[EntityFinding], fine: str) -> int:
    def show_all() -> None:
        if remarks:
            _show_remarks(remarks)
        else:
            click.secho(fine, fg="green")

    context.answer(_findings_document(remarks), show_all)
    return 1 if remarks else 0


def _findings_document(remarks: Sequence[EntityFinding]) -> dict[str, Any]:
    return {"ok": not remarks, "findings": [remark._asdict() for remark in remarks]}


def _show_remarks(remarks: Sequence[EntityFinding]) -> None:
    where = None
    for remark in remarks:
        place = remark.path or remark.id
        if place != where:
            click.secho(display(place or "the event log"), bold=True)
            where = place
        click.echo("  " + click.style(remark.code, fg="yellow") + f"  {remark.message}")
        if remark.hint:
            click.secho(f"    {remark.hint}", dim=True)
    click.echo(counted(len(remarks), "finding"))


# ── ev:… ──


def show_source(context: Context, token: str, wanted: str | None) -> None:
    """Prints what `open ev:…` shows: a token's event, and the artifact's line that is its evidence."""
    from signet_sync.entities import reports

    with context.opened(lasting=True) as workspace:
        source = reports.source(workspace, context.agent, token)
    if wanted is not None:
        if source.path is None or not source.path.endswith(f"--{wanted}.md"):
            raise UsageError(f"the event has no {wanted} as evidence", hint="omit --path", code="no-such-file")
        click.echo(source.path)
    else:
        context.answer(_source_document(source), lambda: _show_source(source))


def _source_document(source: EventSource) -> dict[str, Any]:

    event = source.event
    return {
        "token": event.token,
        "event": event_document(event, event.state),
        "id": event.entity_id,
        "entity_path": source.entity_path,
        "path": source.path,
        "line": source.line,
    }


def _show_source(source: EventSource) -> None:
    from signet_sync.entities.queries import describe_event

    event = source.event
    click.secho(event.token, bold=True)
    click.echo(f"  {event.at}  {event.actor}: {describe_event(event)}")
    click.echo(f"  {display(source.entity_path)}")
    if source.path is not None:
        line = f"#{source.line}" if source.line else ""
        click.echo(f"  evidence: {display(source.path)}{line}")
