"""Implements the commands of `entity` that write: each is one operation, one event, one answer.

The operations are loaded in the functions: completion does without.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Literal

import click

from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context, show_redactions
from signet_sync.cli.parsing import Command, OfWorkspace, stdin_text
from signet_sync.formats.entity_paths import KINDS, Kind
from signet_sync.formats.paths import display

if TYPE_CHECKING:
    from signet_sync.entities.events import Actor
    from signet_sync.entities.operations import EntityResult

KIND = click.Choice(KINDS)
ACTORS = ("agent", "person", "maintainer")
# Set for what a harness runs, some of it in a terminal of its own.
_HARNESS = ("CLAUDECODE", "CODEX_SANDBOX", "CODEX_THREAD_ID", "GEMINI_CLI", "OPENCODE", "QWEN_CODE", "SIGNET_AGENT_ID")


@dataclass(frozen=True, slots=True)
class EntityCall:
    """A call of a command that writes: its context, actor and idempotency key."""

    context: Context
    actor: Actor
    key: str | None

    def run(self, title: str, operation: Callable[..., EntityResult], *arguments: Any, **named: Any) -> None:
        """Executes an operation on the agent's entities and prints its result, for a person under a `title`."""
        context = self.context
        with context.opened(lasting=True) as workspace:
            named |= {"actor": self.actor, "now_us": context.now_us, "key": self.key}
            done = operation(workspace, context.agent, *arguments, **named)

        def show() -> None:
            again = "; this key was used before, nothing was written" if done.replayed else ""
            click.echo(" ".join(filter(None, [title, done.section])) + again)
            click.secho(f"  {display(done.path)}\n  {done.token}", dim=True)
            for warning in done.warnings:
                click.secho(f"  {warning}", fg="yellow")
            show_redactions(done.redactions)

        context.say(done.waiting)
        context.answer(done.document(), show)


def _who_types() -> Actor:
    return "person" if sys.stdin.isatty() and not any(map(os.environ.get, _HARNESS)) else "agent"


def writing(actor: Actor | Callable[[], Actor]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds the options of a command that writes, passed to it as an `EntityCall`; `actor` is the default."""
    shown = actor if isinstance(actor, str) else "person in a terminal, else agent"
    options = (
        click.option("--actor", type=click.Choice(ACTORS), default=actor, show_default=shown, help="Who does it."),
        click.option("--key", metavar="K", help="A repeated key returns the first answer and writes nothing."),
        agent_option,
        now_option,
        json_option,
        pass_context,
    )

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def called(context: Context, actor: Actor, key: str | None, **own: Any) -> None:
            command(EntityCall(context, actor, key), **own)

        made: Callable[..., None] = called
        for option in reversed(options):
            made = option(made)
        return made

    return add


_ENOUGH = 1 << 20  # bytes: more than any section may have, in any encoding


def _text_of(ctx: click.Context, param: click.Parameter, value: str) -> str:
    return stdin_text(_ENOUGH) if value == "-" else value


_entity = click.argument("ref", type=OfWorkspace(), metavar="ID")
_section = click.argument("section")
_text = click.option("--text", metavar="T", required=True, callback=_text_of, help="The text; - reads it from stdin.")
_propose = click.option("--propose", is_flag=True, help="Let a person decide (entity review).")
_expect = click.option("--expect", metavar="HASH", help="Refuse if the section's sha256 (show --json) is another.")
_rationale = click.option("--rationale", metavar="R", help='Why a soft cap is exceeded: "why: …; until: …; plan: …".')
_evidence = click.option(
    "--evidence", type=OfWorkspace(), metavar="PATH#LINE", help="The line of an artifact that supports it."
)
_reason = click.option("--reason", metavar="R", help="Why.")
_required_reason = click.option("--reason", metavar="R", required=True, help="Why.")


# ── content of an entity ──


@click.command(cls=Command, short_help="Create an entity.")
@click.argument("kind", type=KIND)
@click.argument("name")
@click.option("--type", "relation", metavar="T", help="The type of a relationship: reviews, protects, polarized …")
@click.option("--between", metavar="ID ID", nargs=2, help="The two participants of a relationship.")
@writing(_who_types)
def create(call: EntityCall, kind: Kind, name: str, relation: str | None, between: tuple[str, str] | None) -> None:
    """Create an entity: its profile and its notes, with empty sections.

    \b
    Examples:
      signet-sync entity create user Mira
      signet-sync entity create part "Jo Berg"
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
@_expect
@_propose
@click.option("--reason", metavar="R", help="Why a section is emptied (--text '').")
@writing(_who_types)
def set_(call: EntityCall, ref: str, section: str, text: str, **grounds: Any) -> None:
    """Replace the text of a narrative section; the previous text stays in the event log.

    An empty text with --reason empties it. With --propose, which is all that an agent may do with a section that a
    person pinned or locked, a person decides; the answer's event_id identifies the proposal.

    \b
    Examples:
      signet-sync entity set inner-critic identity --text "The voice that reads every draft first."
      signet-sync entity set inner-critic notes/focus --text - < focus.md
    """
    from signet_sync.entities import operations

    call.run("proposed for" if grounds["propose"] else "set", operations.set_section, ref, section, text, **grounds)


@click.command(cls=Command, short_help="Add a paragraph to a section or an item to a list.")
@_entity
@_section
@_text
@_rationale
@_evidence
@_expect
@_propose
@writing(_who_types)
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

    call.run("proposed for" if grounds["propose"] else "added to", operations.append, ref, section, text, **grounds)


@click.command(cls=Command, short_help="Remove an item from a list, with a reason.")
@_entity
@_section
@click.argument("item")
@_required_reason
@writing(_who_types)
def prune(call: EntityCall, ref: str, section: str, item: str, reason: str) -> None:
    """Remove an item from a list; ITEM is its number or key (entity show). The event log keeps it."""
    from signet_sync.entities import operations

    call.run(f"pruned {item} of", operations.prune, ref, section, item, reason=reason)


@click.command(cls=Command, short_help="Change the status of an entity.")
@_entity
@click.argument("status")
@_reason
@writing(_who_types)
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
    from signet_sync.entities import operations

    done = {"pin": "pinned", "unpin": "unpinned", "lock": "locked", "unlock": "unlocked"}
    call.run(done[how], partial(operations.guard, how), ref, section)


@click.command(cls=Command, short_help="Approve or reject a proposal.")
@click.argument("how", metavar="approve|reject", type=click.Choice(["approve", "reject"]))
@click.argument("proposal")
@_reason
@writing("person")
def review(call: EntityCall, how: Literal["approve", "reject"], proposal: str, reason: str | None) -> None:
    """Approve and apply a proposal, or reject it; either stays in the event log.

    PROPOSAL is its event's id, the id's beginning, or its ev:… name.
    """
    from signet_sync.entities import operations

    title = "approved:" if how == "approve" else "rejected:"
    call.run(title, operations.review, proposal, approve=how == "approve", reason=reason)


@click.command(cls=Command, short_help="Take one edit back.")
@click.argument("event")
@writing(_who_types)
def undo(call: EntityCall, event: str) -> None:
    """Take one edit back: what it changed says again what it said before, and later edits stay.

    EVENT is its id or its ev:… name (entity log). Refused if a later edit changed the same passage.
    """
    from signet_sync.entities import operations

    call.run("taken back:", operations.undo, event)
