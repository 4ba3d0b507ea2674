"""Implements the commands of `entity` that write: each is one operation, one event, one answer.

The operations are loaded in the functions: completion does without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from signet_sync.cli.entity.run import ACTORS, KIND, EntityCall, answer_done, writing
from signet_sync.cli.input import stdin_text
from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command, OfWorkspace
from signet_sync.formats.entity_paths import Kind
from signet_sync.formats.handle import in_words
from signet_sync.formats.paths import display

if TYPE_CHECKING:
    from signet_sync.entities.event_log.events import Actor

_ENOUGH = 1 << 20  # bytes: more than any section may have, in any encoding


def _text_of(ctx: click.Context, param: click.Parameter, value: str) -> str:
    return stdin_text(_ENOUGH) if value == "-" else value


_entity = click.argument("ref", type=OfWorkspace(), metavar="ID")
_section = click.argument("section")
_text = click.option("--text", metavar="T", required=True, callback=_text_of, help="The text; - reads it from stdin.")
_rationale = click.option("--rationale", metavar="R", help='Why a soft cap is exceeded: "why: …; until: …; plan: …".')
_evidence = click.option("--evidence", metavar="PATH#LINE", help="The line of an artifact that supports it.")
_reason = click.option("--reason", metavar="R", help="Why.")
_required_reason = click.option("--reason", metavar="R", required=True, help="Why.")


# ── content of an entity ──


@click.command(cls=Command, short_help="Create an entity.")
@click.argument("kind", type=KIND)
@click.argument("name")
@click.option("--type", "relation", metavar="T", help="The type of a relationship: reviews, protects, polarized …")
@click.option("--between", metavar="ID ID", nargs=2, help="The two participants of a relationship.")
@writing("agent")
def create(call: EntityCall, kind: Kind, name: str, relation: str | None, between: tuple[str, str] | None) -> None:
    """Create an entity: its profile and its notes, with empty sections.

    \b
    Examples:
      signet-sync entity create user Mira
      signet-sync entity create person "Jo Berg"
      signet-sync entity create relationship "Jo and Mira" --type reviews --between jo-berg mira
    """
    from signet_sync.entities import operations

    if (kind == "relationship") != (between is not None) or (relation is not None and between is None):
        raise click.UsageError("--type T and --between ID ID are for relationships, which need --between")
    call.run("created", operations.create, kind, name, relation=relation, between=between or ())


@click.command("set", cls=Command, short_help="Replace the text of a section.")
@_entity
@_section
@_text
@_rationale
@_evidence
@writing("agent")
def set_(call: EntityCall, ref: str, section: str, text: str, **grounds: Any) -> None:
    """Replace the text of a narrative section; the previous text stays in the event log.

    \b
    Examples:
      signet-sync entity set inner-critic identity --text "The voice that reads every draft first."
      signet-sync entity set inner-critic notes/focus --text - < focus.md
    """
    from signet_sync.entities import operations

    call.run("set", operations.set_section, ref, section, text, **grounds)


@click.command(cls=Command, short_help="Add a paragraph to a section or an item to a list.")
@_entity
@_section
@_text
@_rationale
@_evidence
@writing("agent")
def append(call: EntityCall, ref: str, section: str, text: str, **grounds: Any) -> None:
    """Add a paragraph to a narrative section, or an item to a list.

    An item of Evidence needs --evidence, the line of an artifact that it quotes; --text says why it matters.

    \b
    Examples:
      signet-sync entity append inner-critic highlights --text "Asked for a second pair of eyes."
      signet-sync entity append inner-critic evidence --text "It speaks too early." \\
          --evidence 'memory/…--transcript.md#34'
    """
    from signet_sync.entities import operations

    call.run("added to", operations.append, ref, section, text, **grounds)


@click.command(cls=Command, short_help="Remove an item from a list, with a reason.")
@_entity
@_section
@click.argument("item")
@_required_reason
@writing("agent")
def prune(call: EntityCall, ref: str, section: str, item: str, reason: str) -> None:
    """Remove an item from a list; ITEM is its number or key (entity show). The event log keeps it."""
    from signet_sync.entities import operations

    call.run(f"pruned {item} of", operations.prune, ref, section, item, reason=reason)


@click.command(cls=Command, short_help="Change the status of an entity.")
@_entity
@click.argument("status")
@_reason
@writing("agent")
def status(call: EntityCall, ref: str, status: str, reason: str | None) -> None:
    """Change the status of an entity: active, dormant, deprecated, or any other word. The change log records it.

    With deprecated, which needs --reason, the entity leaves MEMORY.md; its files stay and state the reason.
    """
    from signet_sync.entities import operations

    call.run(f"status is now {status}", operations.set_status, ref, status, reason=reason)


# ── for people ──


@click.command(cls=Command, short_help="Keep agents from writing a section, or let them again.")
@click.argument("how", metavar="pin|unpin|lock|unlock", type=click.Choice(["pin", "unpin", "lock", "unlock"]))
@_entity
@click.argument("section", required=False)
@writing("person")
def protect(call: EntityCall, how: Literal["pin", "unpin", "lock", "unlock"], ref: str, section: str | None) -> None:
    """Keep agents from writing a section (without SECTION: the whole entity): they may only propose changes.

    A pin says that the section matters as it is, a lock that only people write it. Each is taken back by itself.
    """
    from signet_sync.entities import protection

    done = {"pin": "pinned", "unpin": "unpinned", "lock": "locked", "unlock": "unlocked"}
    call.run(done[how], getattr(protection, how), ref, section)


@click.command(cls=Command, short_help="Submit a change for approval by a person.")
@_entity
@_section
@_text
@_rationale
@_evidence
@writing("agent")
def propose(call: EntityCall, ref: str, section: str, text: str, **grounds: Any) -> None:
    """Submit a change for approval, for a section that an agent may not write.

    If approved, it replaces the whole text of a narrative section, or is added to a list as an item; the answer says
    which. Its event_id identifies the proposal.
    """
    from signet_sync.entities import protection

    call.run("proposed for", protection.propose, ref, section, text, **grounds)


@click.command(cls=Command, short_help="Approve or reject a proposal.")
@click.argument("how", metavar="approve|reject", type=click.Choice(["approve", "reject"]))
@click.argument("proposal")
@_reason
@writing("person")
def review(call: EntityCall, how: Literal["approve", "reject"], proposal: str, reason: str | None) -> None:
    """Approve and apply a proposal, or reject it; either stays in the event log.

    PROPOSAL is its event's id, the id's beginning, or its ev:… name.
    """
    from signet_sync.entities import protection

    if how == "approve":
        call.run("approved:", protection.approve, proposal)
    else:
        call.run("rejected:", protection.reject, proposal, reason=reason)


# ── for maintainers ──

_maintainer = click.option("--actor", type=click.Choice(ACTORS), required=True, help="Must be maintainer.")


@click.command(cls=Command, short_help="Settle a file that drifted.")
@_entity
@click.option("--keep", type=click.Choice(["file", "events"]), required=True, help="Which of the two is right.")
@click.option("--notes", is_flag=True, help="Settle the notes (default: the profile).")
@_maintainer
@agent_option
@now_option
@json_option
@pass_context
def resolve(context: Context, ref: str, keep: Literal["file", "events"], notes: bool, actor: Actor) -> None:
    """Settle a file that entity check names as drifted: record it as it is, or rebuild it from its events.

    The discarded text stays in the event log. Use the word ledger as ID if the event log itself lost its end.
    """
    from signet_sync.entities import drift_resolution

    file: Literal["notes", "profile"] = "notes" if notes else "profile"
    with context.opened(lasting=True) as workspace:
        done = drift_resolution.resolve(
            workspace, context.agent, ref, keep, file=file, actor=actor, now_us=context.now_us
        )
    answer_done(context, done, "recorded as it is" if keep == "file" else "rebuilt from its events")


@click.command(cls=Command, short_help="Turn a field of Extensions into a section.")
@click.argument("field")
@click.option("--kind", type=KIND, help="The entities' kind, if several kinds have the field.")
@_maintainer
@agent_option
@now_option
@json_option
@pass_context
def promote(context: Context, field: str, kind: Kind | None, actor: Actor) -> None:
    """Turn FIELD, a ### heading under Extensions, into a section of its kind, and move it there in every file."""
    from signet_sync.entities import schema_promotion

    with context.opened(lasting=True) as workspace:
        done = schema_promotion.promote(workspace, context.agent, field, kind, actor=actor, now_us=context.now_us)

    def show() -> None:
        click.echo(f"{done.heading} is a section of every {in_words(done.kind)}, from schema version {done.version} on")
        for path in done.migrated:
            click.echo(f"  {display(path)}")

    document = {
        "id": done.anchor,
        "event_id": done.event_id,
        "kind": done.kind,
        "section": done.anchor,
        "heading": done.heading,
        "schema_version": done.version,
        "migrated": list(done.migrated),
    }
    context.answer(document, show)
