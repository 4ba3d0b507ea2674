"""Implements the commands of `entity` that write: each is one operation, one event, one answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from signet_sync.cli.entity.run import ACTORS, Call, calling, opened, tell
from signet_sync.cli.main import (
    Context,
    agent_option,
    emit,
    json_option,
    now_option,
    pass_context,
    resolve_now,
    stdin_text,
)
from signet_sync.formats.entity_paths import KINDS, Kind

if TYPE_CHECKING:
    from signet_sync.entities.event_log.events import Actor
    from signet_sync.entities.results import PromotedField

_ENOUGH = 1 << 20  # bytes: more than any section may have, in any encoding

_entity = click.argument("ref", metavar="ID")
_section = click.argument("section")
_text = click.option("--text", metavar="T", required=True, help="The words; - reads them from stdin.")
_rationale = click.option("--rationale", metavar="R", help='Why a soft cap is exceeded: "why: …; until: …; plan: …".')
_evidence = click.option("--evidence", metavar="PATH#LINE", help="The line of an artifact that it rests on.")
_reason = click.option("--reason", metavar="R", help="Why.")
_needed_reason = click.option("--reason", metavar="R", required=True, help="Why.")


def _said(text: str) -> str:
    return stdin_text(_ENOUGH) if text == "-" else text


# ── content of an entity ──


@click.command(short_help="Make a new entity.")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option("--type", "relation", metavar="T", help="What a relationship is: reviews, protects, polarized …")
@click.option("--between", metavar="ID ID", nargs=2, help="Whom a relationship is between.")
@calling("agent")
def create(call: Call, kind: Kind, name: str, relation: str | None, between: tuple[str, str] | None) -> None:
    """Make a new entity: its profile and its notes, with empty sections.

    \b
    Examples:
      signet-sync entity create user Mira
      signet-sync entity create part "Inner Critic"
      signet-sync entity create relationship "The critic and the planner" \\
          --type polarized --between inner-critic planner
    """
    from signet_sync.entities import operations

    if (kind == "relationship") != (between is not None) or (relation is not None and between is None):
        raise click.UsageError("a relationship, and nothing else, takes --type T --between ID ID")
    call.do(
        "made",
        lambda workspace: operations.create(
            workspace, call.agent, kind, name, relation=relation, between=between or (), **call.asked
        ),
    )


@click.command("set", short_help="Write a section's words anew.")
@_entity
@_section
@_text
@_rationale
@_evidence
@calling("agent")
def set_(call: Call, ref: str, section: str, text: str, **grounds: Any) -> None:
    """Write a narrative section's words anew; what stood there stays in the ledger.

    \b
    Examples:
      signet-sync entity set inner-critic identity --text "The voice that reads every draft first."
      signet-sync entity set inner-critic notes/focus --text - < focus.md
    """
    from signet_sync.entities import operations

    words = _said(text)
    call.do(
        "set",
        lambda workspace: operations.set_section(workspace, call.agent, ref, section, words, **grounds, **call.asked),
    )


@click.command(short_help="Add a paragraph to a section, an item to a list.")
@_entity
@_section
@_text
@_rationale
@_evidence
@calling("agent")
def append(call: Call, ref: str, section: str, text: str, **grounds: Any) -> None:
    """Add a paragraph to a narrative section, an item to a list.

    An item of Evidence needs --evidence: the line of an artifact that it quotes; --text says why it matters.

    \b
    Examples:
      signet-sync entity append inner-critic highlights --text "Asked for a second pair of eyes."
      signet-sync entity append inner-critic evidence --text "It speaks too early." \\
          --evidence 'memory/…--transcript.md#34'
    """
    from signet_sync.entities import operations

    words = _said(text)
    call.do(
        "added to",
        lambda workspace: operations.append(workspace, call.agent, ref, section, words, **grounds, **call.asked),
    )


@click.command(short_help="Take an item out of a list, with a reason.")
@_entity
@_section
@click.argument("item")
@_needed_reason
@calling("agent")
def prune(call: Call, ref: str, section: str, item: str, reason: str) -> None:
    """Take an item out of a list; ITEM is its number or key (entity show). The ledger keeps it."""
    from signet_sync.entities import operations

    call.do(
        f"pruned {item} of",
        lambda workspace: operations.prune(workspace, call.agent, ref, section, item, reason=reason, **call.asked),
    )


@click.command(short_help="Give an entity another status.")
@_entity
@click.argument("status")
@_reason
@calling("agent")
def status(call: Call, ref: str, status: str, reason: str | None) -> None:
    """Give an entity another status: active, dormant, or whatever says it best. The change log tells it."""
    from signet_sync.entities import operations

    call.do(
        f"status is {status} now",
        lambda workspace: operations.set_status(workspace, call.agent, ref, status, reason=reason, **call.asked),
    )


@click.command(short_help="Give an entity another name.")
@_entity
@click.argument("name")
@calling("agent")
def rename(call: Call, ref: str, name: str) -> None:
    """Give an entity another name, and its folder with it; its id stays."""
    from signet_sync.entities import operations

    call.do("renamed", lambda workspace: operations.rename(workspace, call.agent, ref, name, **call.asked))


@click.command(short_help="Mark an entity as past, with a reason.")
@_entity
@_needed_reason
@calling("agent")
def deprecate(call: Call, ref: str, reason: str) -> None:
    """Mark an entity as past: it leaves MEMORY.md, its files stay and say why."""
    from signet_sync.entities import operations

    call.do(
        "deprecated", lambda workspace: operations.deprecate(workspace, call.agent, ref, reason=reason, **call.asked)
    )


# ── for people ──


def _guarding(name: Literal["pin", "unpin", "lock", "unlock"], done: str, short: str, text: str) -> click.Command:
    """Makes one of the four commands that differ in a word."""

    @click.command(name, short_help=short, help=text)
    @_entity
    @click.argument("section", required=False)
    @calling("person")
    def command(call: Call, ref: str, section: str | None) -> None:
        from signet_sync.entities import protection

        call.do(done, lambda workspace: protection.guard(name, workspace, call.agent, ref, section, **call.asked))

    return command


pin = _guarding(
    "pin",
    "pinned",
    "Keep a section as it is, because it matters.",
    "Keep a section (without SECTION: the whole entity) as it is, because it matters: agents may only propose.",
)
unpin = _guarding("unpin", "unpinned", "Take a pin away.", "Take a pin away: agents may write again.")
lock = _guarding(
    "lock",
    "locked",
    "Keep agents from writing to a section.",
    "Keep agents from writing to a section (without SECTION: to the whole entity): they may only propose.",
)
unlock = _guarding("unlock", "unlocked", "Take a lock away.", "Take a lock away: agents may write again.")


@click.command(short_help="Put a text before a person.")
@_entity
@_section
@_text
@_rationale
@_evidence
@calling("agent")
def propose(call: Call, ref: str, section: str, text: str, **grounds: Any) -> None:
    """Put a text before a person, for a section that an agent may not write.

    A narrative would be set to it, a list would get it as an item. The event_id of the answer is the proposal's name.
    """
    from signet_sync.entities import protection

    words = _said(text)
    call.do(
        "proposed for",
        lambda workspace: protection.propose(workspace, call.agent, ref, section, words, **grounds, **call.asked),
    )


@click.command(short_help="Do what was proposed.")
@click.argument("proposal")
@calling("person")
def approve(call: Call, proposal: str) -> None:
    """Do what was proposed; PROPOSAL is its event's id, the id's beginning, or its ev:… token."""
    from signet_sync.entities import protection

    call.do("approved:", lambda workspace: protection.approve(workspace, call.agent, proposal, **call.asked))


@click.command(short_help="Turn a proposal down.")
@click.argument("proposal")
@_reason
@calling("person")
def reject(call: Call, proposal: str, reason: str | None) -> None:
    """Turn a proposal down; it stays in the ledger."""
    from signet_sync.entities import protection

    call.do(
        "rejected:", lambda workspace: protection.reject(workspace, call.agent, proposal, reason=reason, **call.asked)
    )


# ── for maintainers ──

_maintainer = click.option("--actor", type=click.Choice(ACTORS), required=True, help="Only a maintainer may.")


@click.command(short_help="Settle a file that drifted.")
@_entity
@click.option("--keep", type=click.Choice(["file", "events"]), required=True, help="What counts from now on.")
@click.option("--notes", is_flag=True, help="Settle notes.md (else: profile.md).")
@_maintainer
@agent_option
@now_option
@json_option
@pass_context
def resolve(
    context: Context,
    ref: str,
    keep: Literal["file", "events"],
    notes: bool,
    actor: Actor,
    agent: str,
    now: str | None,
    as_json: bool,
) -> None:
    """Settle a file that stands in entity drift: it counts as it is, or is written again from its events.

    The text that gives way stays in the ledger. ID is the word ledger where the ledger itself had lost its end.
    """
    from signet_sync.entities import drift_resolution

    instant = resolve_now(now)
    with opened(context) as workspace:
        done = drift_resolution.resolve(
            workspace, agent, ref, keep, file="notes" if notes else "profile", actor=actor, now_us=instant
        )
    said = "kept as it stands" if keep == "file" else "written again from its events"
    tell(context, done, said, as_json=as_json)


@click.command(short_help="Make a field of Extensions a section.")
@click.argument("field")
@click.option("--kind", type=click.Choice(KINDS), help="Of which kind, where several have the field.")
@_maintainer
@agent_option
@now_option
@json_option
@pass_context
def promote(
    context: Context, field: str, kind: Kind | None, actor: Actor, agent: str, now: str | None, as_json: bool
) -> None:
    """Make FIELD, a ### heading under Extensions, a section of its kind, and move it there in every file."""
    from signet_sync.entities import schema_promotion

    instant = resolve_now(now)
    with opened(context) as workspace:
        done = schema_promotion.promote(workspace, agent, field, kind, actor=actor, now_us=instant)
    if as_json:
        emit(_promoted(done))
    else:
        _tell_promoted(done)


def _promoted(done: PromotedField) -> dict[str, Any]:
    return {
        "id": done.anchor,
        "event_id": done.event_id,
        "kind": done.kind,
        "section": done.anchor,
        "heading": done.heading,
        "schema_version": done.version,
        "migrated": list(done.migrated),
    }


def _tell_promoted(done: PromotedField) -> None:
    from signet_sync.formats.paths import display

    click.echo(f"{done.heading} is a section of every {done.kind}, from schema version {done.version} on")
    for path in done.migrated:
        click.echo(f"  {display(path)}")
