"""Implements the commands of `entity` that read: files, events, and whether they agree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from signet_sync.cli.entity.run import opened
from signet_sync.cli.main import (
    Context,
    agent_option,
    counted,
    emit,
    json_option,
    now_option,
    pass_context,
    resolve_now,
)
from signet_sync.formats.entity_paths import FILES, KINDS, Kind

if TYPE_CHECKING:
    from signet_sync.entities.results import (
        EntityFinding,
        EntitySummary,
        EntityView,
        EventSource,
        LoggedEvent,
        Proposal,
        Replay,
        SectionView,
    )

_entity = click.argument("ref", metavar="ID")
_entity_or_all = click.argument("ref", metavar="[ID]", required=False)


@click.command("list", short_help="All entities of an agent.")
@click.option("--kind", type=click.Choice(KINDS), help="Only these.")
@agent_option
@now_option
@json_option
@pass_context
def list_(context: Context, kind: str | None, agent: str, now: str | None, as_json: bool) -> None:
    """All entities of an agent, one line each."""
    from signet_sync.entities import reports

    instant = resolve_now(now)
    with opened(context) as workspace:
        found = reports.listing(workspace, agent, kind=cast(Kind | None, kind), now_us=instant)
    if as_json:
        emit({"entities": [entity._asdict() for entity in found]})
        return
    if not found:
        context.say("no entities yet; make one with: " + context.command_line('entity create user "NAME"'))
    for entity in found:
        _show_line(entity)


def _show_line(entity: EntitySummary) -> None:
    what = entity.kind if entity.type is None else f"{entity.kind}, {entity.type}"
    status = "" if entity.status == "active" else f" · {entity.status}"
    click.echo(f"{click.style(entity.title, bold=True)}  ({what}{status})  {click.style(entity.id, dim=True)}")
    if entity.line:
        click.echo(f"  {entity.line}")


@click.command(short_help="One entity: its sections, its notes.")
@_entity
@agent_option
@now_option
@json_option
@pass_context
def show(context: Context, ref: str, agent: str, now: str | None, as_json: bool) -> None:
    """One entity: its sections, its notes, what is pinned, locked and proposed."""
    from signet_sync.entities import reports
    from signet_sync.entities.results import shown_document

    instant = resolve_now(now)
    with opened(context) as workspace:
        shown = reports.show(workspace, agent, ref, now_us=instant)
    if as_json:
        emit(shown_document(shown))
    else:
        _show(shown)


def _show(shown: EntityView) -> None:
    from signet_sync.formats.paths import display

    click.secho(shown.title, bold=True)
    what = [shown.kind, *([shown.type] if shown.type else []), shown.status, shown.id]
    click.echo(f"  {' · '.join(what)}")
    click.secho(f"  {display(shown.path)}", dim=True)
    if shown.participants:
        click.echo(f"  between {' and '.join(shown.participants)}")
    if shown.drifted:
        click.secho("  a file of it drifted: see signet-sync entity drift", fg="red")
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
    would = "would be" if proposal.op == "set" else "would get the item"
    click.echo("\n" + click.style(f"proposed: {proposal.section} {would}", fg="yellow", bold=True))
    click.echo(_indented(proposal.text))
    click.secho(f"  {proposal.at[:10]} · entity approve {proposal.id}", dim=True)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.strip("\n").split("\n"))


@click.command(short_help="What happened to an entity, and by whom.")
@_entity_or_all
@click.option("--limit", type=click.IntRange(0), default=0, help="Only the newest so many.")
@agent_option
@json_option
@pass_context
def log(context: Context, ref: str | None, limit: int, agent: str, as_json: bool) -> None:
    """What happened to an entity (without ID: to all), and by whom; newest first."""
    from signet_sync.entities import reports

    with opened(context) as workspace:
        found = reports.log(workspace, agent, ref, limit=limit)
    if as_json:
        emit({"ok": True, "findings": [], "events": [event_document(logged) for logged in found]})
        return
    if not found:
        context.say("nothing happened yet")
    for logged in found:
        _show_event(logged, with_id=ref is None)


def event_document(logged: LoggedEvent) -> dict[str, Any]:
    """Returns an event with the fields of its line in the log (without None and empty ones) and its resulting state."""
    from signet_sync.entities.event_log.events import encode

    record: dict[str, Any] = json.loads(encode(logged.event))
    return {**record, "state": logged.state}


def _show_event(logged: LoggedEvent, *, with_id: bool) -> None:
    from signet_sync.entities.queries import describe_event

    event = logged.event
    what = f"{event.entity_id or 'all'}  {describe_event(event)}" if with_id else describe_event(event)
    state = "" if logged.state == "committed" else click.style(f"  {logged.state}", fg="red")
    gone = click.style("  (its words were removed)", dim=True) if event.erased else ""
    click.echo(f"{event.at[:10]} {event.at[11:16]}  {event.actor:<10}  {what}{state}{gone}")
    for label, text in (("why", event.reason), ("cap", event.rationale)):
        if text:
            click.echo(f"    {label}: {text}")
    click.secho(f"    {event.token}", dim=True)


@click.command(short_help="What the schema would have otherwise.")
@_entity_or_all
@agent_option
@now_option
@json_option
@pass_context
def lint(context: Context, ref: str | None, agent: str, now: str | None, as_json: bool) -> int:
    """What the schema would have otherwise about an entity (without ID: about all). Exit 1 where there is something."""
    from signet_sync.entities import reports

    instant = resolve_now(now)
    with opened(context) as workspace:
        remarks = reports.lint(workspace, agent, ref, now_us=instant)
    return _findings(remarks, as_json, "tidy")


@click.command(short_help="Is the ledger as it was written?")
@agent_option
@json_option
@pass_context
def verify(context: Context, agent: str, as_json: bool) -> int:
    """Whether the ledger stands as it was written: no line changed, gone, moved or cut off. Exit 1 where it doesn't."""
    from signet_sync.entities import reports

    with opened(context) as workspace:
        remarks = reports.verify(workspace, agent)
    return _findings(remarks, as_json, "the ledger is as it was written")


@click.command(short_help="An entity told again from its events.")
@_entity
@click.option("--check", is_flag=True, help="Only say whether the files are what the events tell.")
@click.option("--notes", is_flag=True, help="Print notes.md (else: profile.md).")
@agent_option
@json_option
@pass_context
def replay(context: Context, ref: str, check: bool, notes: bool, agent: str, as_json: bool) -> int:
    """Print an entity's profile as its events tell it. Nothing is written. Exit 1 where its files are otherwise."""
    from signet_sync.entities import reports

    with opened(context) as workspace:
        told = reports.replay(workspace, agent, ref)
    if as_json:
        emit(_replay_document(told, check=check))
        return 1 if told.findings else 0
    if check:
        return _findings(told.findings, as_json, "the files are what the events tell")
    wanted = FILES[1 if notes else 0]
    click.echo(told.texts.get(wanted, ""), nl=False)
    for remark in told.findings:
        context.say(f"{remark.code}: {remark.message}")
    return 1 if told.findings else 0


def _replay_document(told: Replay, *, check: bool) -> dict[str, Any]:
    found = {"ok": not told.findings, "findings": [remark._asdict() for remark in told.findings]}
    return found if check else {**found, "id": told.id, "files": dict(told.texts)}


@click.command(short_help="Files that wait for a maintainer.")
@agent_option
@json_option
@pass_context
def drift(context: Context, agent: str, as_json: bool) -> int:
    """Files that nobody writes to before a maintainer has looked; entity resolve ends it. Exit 1 where one waits."""
    from signet_sync.entities import reports

    with opened(context) as workspace:
        remarks = reports.drift(workspace, agent)
    if remarks and not as_json:
        context.say("settle one with: signet-sync entity resolve ID --keep file|events --actor maintainer")
    return _findings(remarks, as_json, "nothing drifted")


def _findings(remarks: Sequence[EntityFinding], as_json: bool, fine: str) -> int:
    if as_json:
        emit({"ok": not remarks, "findings": [remark._asdict() for remark in remarks]})
    elif not remarks:
        click.secho(fine, fg="green")
    else:
        _show_remarks(remarks)
    return 1 if remarks else 0


def _show_remarks(remarks: Sequence[EntityFinding]) -> None:
    from signet_sync.formats.paths import display

    where = None
    for remark in remarks:
        place = remark.path or remark.id
        if place != where:
            click.secho(display(place or "the ledger"), bold=True)
            where = place
        click.echo("  " + click.style(remark.code, fg="yellow") + f"  {remark.message}")
        if remark.hint:
            click.secho(f"    {remark.hint}", dim=True)
    click.echo(counted(len(remarks), "finding"))


# ── ev:… ──


def show_source(context: Context, agent: str, token: str, wanted: str | None, as_json: bool) -> None:
    """Prints what `open ev:…` shows: a token's event, and the artifact's line that is its evidence."""
    from signet_sync.entities import reports
    from signet_sync.errors import UsageError

    with opened(context) as workspace:
        source = reports.source(workspace, agent, token)
    if wanted is not None:
        if source.path is None or not source.path.endswith(f"--{wanted}.md"):
            raise UsageError(f"the event rests on no {wanted}", hint="leave --path out", code="no-such-file")
        click.echo(source.path)
    elif as_json:
        emit(_source_document(source))
    else:
        _show_source(source)


def _source_document(source: EventSource) -> dict[str, Any]:
    from signet_sync.entities.results import LoggedEvent

    event = source.event
    return {
        "token": event.token,
        "event": event_document(LoggedEvent(event, event.state)),
        "id": event.entity_id,
        "entity_path": source.entity_path,
        "path": source.path,
        "line": source.line,
    }


def _show_source(source: EventSource) -> None:
    from signet_sync.entities.queries import describe_event
    from signet_sync.formats.paths import display

    event = source.event
    click.secho(event.token, bold=True)
    click.echo(f"  {event.at}  {event.actor}: {describe_event(event)}")
    click.echo(f"  {display(source.entity_path)}")
    if source.path is not None:
        line = f"#{source.line}" if source.line else ""
        click.echo(f"  rests on {display(source.path)}{line}")
