"""`entity`: the commands for curated files about the user, parts and relationships; a writing one is one operation."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, Literal

import click

from signet_sync.cli.main import Context, show_redactions
from signet_sync.cli.parsing import Group, OfWorkspace, command, stdin_text
from signet_sync.entities import maintenance, operations, queries
from signet_sync.entities.events import Actor, Event, encode
from signet_sync.entities.maintenance import Resolution
from signet_sync.entities.queries import EntityView, describe_event, texts_of
from signet_sync.formats.entity_paths import KINDS, Finding, Kind
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import local_day, local_minute
from signet_sync.text.phrases import count_noun

_HELP = """Manage files about the user, parts and relationships between them.

\b
ID       an entity's id or its beginning (six characters or more), the words in its folder's
         name, or its title
SECTION  a heading in any case, or its anchor; of the notes notes/inbox, notes/focus and
         notes/parking-lot

Every change is an event in entities/ledger with the text before and after; nothing is deleted.
See docs/entities.md.
"""
entity = Group("entity", help=_HELP, short_help="Manage files about the user, parts and relationships.")

_KIND = click.Choice(KINDS)
_ACTORS = click.Choice(["agent", "person", "maintainer"])
# Set for what a harness runs, some of it in a terminal of its own.
_HARNESS = ("CLAUDECODE", "CODEX_SANDBOX", "CODEX_THREAD_ID", "GEMINI_CLI", "OPENCODE", "QWEN_CODE", "SIGNET_AGENT_ID")
_ENOUGH = 1 << 20  # bytes: more than any section may have, in any encoding


# ── commands that write ──

# What a command that writes returns: the answer's title for a person, the operation, and what it is given.
_Call = tuple[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def _who_types() -> Actor:
    return "person" if sys.stdin.isatty() and not any(map(os.environ.get, _HARNESS)) else "agent"


def _write_command(
    short_help: str, *, actor: Actor | Callable[[], Actor] = _who_types, name: str | None = None
) -> Callable[[Callable[..., _Call]], click.Command]:
    """Makes a function that chooses an operation a command which executes it; `actor` is who does it by default."""
    usual = actor if isinstance(actor, str) else "person in a terminal, else agent"

    def make(choose: Callable[..., _Call]) -> click.Command:
        @wraps(choose)
        def act(context: Context, actor: Actor, key: str | None, **own: Any) -> None:
            title, operation, given, named = choose(**own)
            with context.open_workspace(lasting=True) as workspace:
                done = operation(workspace, context.agent, *given, **named, actor=actor, now_us=context.now_us, key=key)

            def show() -> None:
                again = "; this key was used before, nothing was written" if done.replayed else ""
                click.echo(" ".join(filter(None, [title, done.section])) + again)
                click.secho(f"  {display(done.path)}\n  {done.token}", dim=True)
                for warning in done.warnings:
                    click.secho(f"  {warning}", fg="yellow")
                show_redactions(done.redactions)

            context.say(done.waiting)
            context.answer(done.document(), show)

        made = command("--agent", "--now", "--json", of=entity, name=name, short_help=short_help)(act)
        made.params[-7:-7] = [
            click.Option(["--actor"], type=_ACTORS, default=actor, show_default=usual, help="Who does it."),
            click.Option(["--key"], metavar="K", help="A repeated key returns the first answer and writes nothing."),
        ]
        return made

    return make


def _read_text(ctx: click.Context, param: click.Parameter, value: str) -> str:
    return stdin_text(_ENOUGH) if value == "-" else value


_ref = click.argument("ref", type=OfWorkspace(), metavar="ID")
_ref_or_all = click.argument("ref", type=OfWorkspace(), metavar="[ID]", required=False)
_section = click.argument("section")
# What says a text for a section, and what it rests on.
_TEXTS = (
    click.option("--text", metavar="T", required=True, callback=_read_text, help="The text; - reads it from stdin."),
    click.option("--rationale", metavar="R", help='Why a soft cap is exceeded: "why: …; until: …; plan: …".'),
    click.option(
        "--evidence", type=OfWorkspace(), metavar="PATH#LINE", help="The line of an artifact that supports it."
    ),
    click.option("--expect", metavar="HASH", help="Refuse if the section's sha256 (show --json) is another."),
    click.option("--propose", is_flag=True, help="Let a person decide (entity review)."),
)


def _writes_section(function: Callable[..., _Call]) -> Callable[..., _Call]:
    for option in (*reversed(_TEXTS), _section, _ref):
        function = option(function)
    return function


_reason = click.option("--reason", metavar="R", help="Why.")


@_write_command("Create an entity.")
@click.argument("kind", type=_KIND)
@click.argument("name")
@click.option("--type", "relation", metavar="T", help="The type of a relationship: reviews, protects, polarized …")
@click.option("--between", metavar="ID ID", nargs=2, help="The two participants of a relationship.")
def create(kind: Kind, name: str, relation: str | None, between: tuple[str, str] | None) -> _Call:
    """Create an entity: its profile and its notes, with empty sections.

    \b
    Examples:
      signet-sync entity create user Mira
      signet-sync entity create part "Jo Berg"
      signet-sync entity create relationship "Jo and Mira" --type reviews --between jo-berg mira
    """
    if (kind == "relationship") != (between is not None) or (relation is not None and between is None):
        raise click.UsageError("--type T and --between ID ID are for relationships, which need --between")
    return "created", operations.create, (kind, name), {"relation": relation, "between": between or ()}


@command("--agent", "--now", "--json", of=entity, short_help="Show an entity, or list all of them.")
@_ref_or_all
def show(context: Context, ref: str | None) -> None:
    """Show an entity: its sections and notes, and what is pinned, locked and proposed. Without ID list all of them."""
    with queries.open_read_only(context.place(), context.agent, context.now_us) as repo:
        if ref is not None:
            shown = queries.view(repo, repo.require(ref))
            context.answer(shown.document(), lambda: _show_entity(shown))
            return
        found = queries.list_entities(repo)

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


def _show_entity(shown: EntityView) -> None:
    click.secho(shown.title, bold=True)
    click.echo(f"  {' · '.join(filter(None, [shown.kind, shown.type, shown.status, shown.id]))}")
    click.secho(f"  {display(shown.path)}", dim=True)
    if shown.participants:
        click.echo(f"  between {' and '.join(shown.participants)}")
    if shown.drifted:
        click.secho("  one of its files drifted: see signet-sync entity check", fg="red")
    for how, names in (("pinned", shown.pins), ("locked", shown.locks)):
        if names:
            click.echo(f"  {how}: {', '.join('everything' if name == '*' else name for name in names)}")
    for section in shown.sections:
        if section.text.strip():
            place = f"  ({section.name})" if section.name.startswith("notes/") else ""
            click.echo("\n" + click.style(section.heading, fg="cyan", bold=True) + click.style(place, dim=True))
            for item in section.items or ():
                click.echo(f"  {item.number}. " + item.text.replace("\n", "\n     "))
            if not section.items:
                click.echo(_indent(section.text))
    for proposal in shown.proposals:
        would = {"set": "would become", "append": "would get the paragraph"}.get(proposal.op, "would get the item")
        click.echo("\n" + click.style(f"proposed: {proposal.section} {would}", fg="yellow", bold=True))
        click.echo(_indent(proposal.text))
        click.secho(f"  {local_day(proposal.at)} · entity review approve {proposal.id}", dim=True)
    empty = [section.name for section in shown.sections if not section.text.strip()]
    if empty:
        click.secho(f"\nempty: {', '.join(empty)}", dim=True)


def _indent(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.strip("\n").split("\n"))


@_write_command("Replace the text of a section.", name="set")
@_writes_section
@click.option("--reason", metavar="R", help="Why a section is emptied (--text '').")
def set_(ref: str, section: str, text: str, **grounds: Any) -> _Call:
    """Replace the text of a narrative section; the previous text stays in the event log.

    An empty text with --reason empties it. With --propose, which is all that an agent may do with a section that a
    person pinned or locked, a person decides; the answer's event_id identifies the proposal.

    \b
    Examples:
      signet-sync entity set inner-critic identity --text "The voice that reads every draft first."
      signet-sync entity set inner-critic notes/focus --text - < focus.md
    """
    return "proposed for" if grounds["propose"] else "set", operations.set_section, (ref, section, text), grounds


@_write_command("Add a paragraph to a section or an item to a list.")
@_writes_section
def append(ref: str, section: str, text: str, **grounds: Any) -> _Call:
    """Add a paragraph to a narrative section, or an item to a list.

    An item of Evidence needs --evidence, the line of an artifact that it quotes; --text says why it matters.

    \b
    Examples:
      signet-sync entity append inner-critic highlights --text "Asked for a second pair of eyes."
      signet-sync entity append inner-critic evidence --text "It speaks too early." \\
          --evidence 'memory/…--transcript.md#34'
    """
    return "proposed for" if grounds["propose"] else "added to", operations.append, (ref, section, text), grounds


@_write_command("Remove an item from a list, with a reason.")
@_ref
@_section
@click.argument("item")
@click.option("--reason", metavar="R", required=True, help="Why.")
def prune(ref: str, section: str, item: str, reason: str) -> _Call:
    """Remove an item from a list; ITEM is its number or key (entity show). The event log keeps it."""
    return f"pruned {item} of", operations.prune, (ref, section, item), {"reason": reason}


@_write_command("Change the status of an entity.")
@_ref
@click.argument("status")
@_reason
def status(ref: str, status: str, reason: str | None) -> _Call:
    """Change the status of an entity: active, dormant, deprecated, or any other word. The change log records it.

    With deprecated, which needs --reason, the entity leaves MEMORY.md; its files stay and state the reason.
    """
    return f"status is now {status}", operations.set_status, (ref, status), {"reason": reason}


@_write_command("Keep agents from writing a section, or let them again.", actor="person")
@click.argument("how", metavar="pin|unpin|lock|unlock", type=click.Choice(["pin", "unpin", "lock", "unlock"]))
@_ref
@click.argument("section", required=False)
def protect(how: Literal["pin", "unpin", "lock", "unlock"], ref: str, section: str | None) -> _Call:
    """Keep agents from writing a section (without SECTION: the whole entity): they may only propose changes.

    A pin says that the section matters as it is, a lock that only people write it. Each is taken back by itself.
    """
    done = {"pin": "pinned", "unpin": "unpinned", "lock": "locked", "unlock": "unlocked"}
    return done[how], partial(operations.guard, how), (ref, section), {}


@_write_command("Approve or reject a proposal.", actor="person")
@click.argument("how", metavar="approve|reject", type=click.Choice(["approve", "reject"]))
@click.argument("proposal")
@_reason
def review(how: Literal["approve", "reject"], proposal: str, reason: str | None) -> _Call:
    """Approve and apply a proposal, or reject it; either stays in the event log.

    PROPOSAL is its event's id, the id's beginning, or its ev:… name.
    """
    approves = how == "approve"
    title = "approved:" if approves else "rejected:"
    return title, operations.review, (proposal,), {"approve": approves, "reason": reason}


# ── events ──


@command("--agent", "--json", of=entity, short_help="List the events of an entity, with the text before and after.")
@_ref_or_all
def log(context: Context, ref: str | None) -> None:
    """List the events of an entity (without ID: of all), newest first, with the text before and after.

    entity undo takes one of them back.
    """
    with queries.open_read_only(context.place(), context.agent, context.now_us) as repo:
        found = queries.log(repo, ref)

    def show_all() -> None:
        if not found:
            context.say("no events yet")
        for event in found:
            _show_event(event, with_id=ref is None)

    context.answer({"events": [_describe(event) for event in found]}, show_all)


def _describe(event: Event) -> dict[str, Any]:
    """Returns an event with the fields of its line in the log, and its token."""
    return {**json.loads(encode(event)), "token": event.token}


def _show_event(event: Event, *, with_id: bool) -> None:
    what = f"{event.entity_id or 'all'}  {describe_event(event)}" if with_id else describe_event(event)
    gone = click.style("  (its text was removed)", dim=True) if event.erased else ""
    click.echo(f"{local_minute(event.at)}  {event.actor:<10}  {what}{gone}")
    for label in ("reason", "rationale"):
        if event.text_part(label):
            click.echo(f"    {label}: {event.text_part(label)}")
    for name, (before, after) in texts_of(event).items():
        if name != event.section:
            click.echo(f"    {name}")
        for sign, colour, text in (("-", "red", before), ("+", "green", after)):
            for line in text.split("\n") if text.strip() else ():
                click.secho(f"    {sign} {line}".rstrip(), fg=colour)
    click.secho(f"    {event.token}", dim=True)


def show_source(context: Context, token: str) -> None:
    """Prints what `open ev:…` shows: a token's event, and the artifact's line that is its evidence."""
    with queries.open_read_only(context.place(), context.agent, context.now_us) as repo:
        source = queries.source(repo, token)
    event = source.event
    document: dict[str, Any] = {"token": event.token, "event": _describe(event), "id": event.entity_id}
    document |= {"entity_path": source.entity_path, "path": source.path, "line": source.line}

    def show() -> None:
        _show_event(event, with_id=True)
        click.echo(f"    {display(source.entity_path)}")
        if source.path is not None:
            click.echo(f"    evidence: {display(source.path)}{f'#{source.line}' if source.line else ''}")

    context.answer(document, show)


@_write_command("Take one edit back.")
@click.argument("event")
def undo(event: str) -> _Call:
    """Take one edit back: what it changed says again what it said before, and later edits stay.

    EVENT is its ev:… name (entity log). Refused if a later edit changed the same passage.
    """
    return "taken back:", operations.undo, (event,), {}


# ── for maintainers ──


@command(
    "--yes", "--agent", "--now", "--json", of=entity, short_help="Check entities and their event log; settle drift."
)
@_ref_or_all
@click.option("--keep", type=click.Choice(["file", "events"]), help="Settle drift of ID: which of the two is right.")
def check(context: Context, ref: str | None, keep: Literal["file", "events"] | None, yes: bool) -> int:
    """Check an entity (without ID: all). Exit 1 if there are findings.

    The files against the schema and against their events, and the event log: no line changed, missing, moved or cut
    off. A file that drifted is not written to before --keep settles it, after showing what would change: with file it
    is made an entity file again and recorded, with events it is written again. The text that goes stays in the event
    log. Use the word ledger as ID if the event log itself lost its end.
    """
    if keep is not None:
        if ref is None:
            raise click.UsageError("--keep needs an ID")
        _settle(context, ref, keep, yes=yes)
        return 0
    with context.open_workspace(lasting=True) as workspace:
        found = queries.findings(workspace, context.agent, ref, now_us=context.now_us)
    document = {"ok": not found, "findings": [one.document() for one in found]}
    context.answer(document, lambda: _show_findings(found))
    return 1 if found else 0


def _show_findings(found: Sequence[Finding]) -> None:
    where = None
    for one in found:
        place = one.path or one.id
        if place != where:
            click.secho(display(place or "the event log"), bold=True)
            where = place
        click.echo("  " + click.style(one.code, fg="yellow") + f"  {one.message}")
        if one.hint:
            click.secho(f"    {one.hint}", dim=True)
    if found:
        click.echo(count_noun(len(found), "finding"))
    else:
        click.secho("no findings", fg="green")


def _settle(context: Context, ref: str, keep: Literal["file", "events"], *, yes: bool) -> None:
    with context.open_workspace(lasting=True) as workspace:
        planned = maintenance.preview(workspace, context.agent, ref, keep, context.now_us)
        context.confirm(f"keep the {keep}?", yes=yes, listing=lambda: _show_plan(planned))
        done = maintenance.resolve(workspace, context.agent, ref, keep, actor="maintainer", now_us=context.now_us)

    def show() -> None:
        for one in done:
            click.echo(f"{'recorded as it is' if keep == 'file' else 'written from its events'}  {display(one.path)}")
            click.secho(f"  {one.token}", dim=True)

    for one in done:
        context.say(one.waiting)
    context.answer({"settled": [one.document() for one in done]}, show)


def _show_plan(planned: Sequence[Resolution]) -> None:
    for one in planned:
        click.secho(f"{display(one.drift.path)}: {one.drift.message}", bold=True)
        for line in one.diff().split("\n")[2:]:
            click.secho(f"  {line}", fg={"+": "green", "-": "red"}.get(line[:1]))
