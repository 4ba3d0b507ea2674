"""Runs a command of `entity` that writes: one operation on an opened workspace, and its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context, show_redactions
from signet_sync.formats.entity_paths import KINDS
from signet_sync.formats.paths import display

if TYPE_CHECKING:
    from signet_sync.entities.events import Actor
    from signet_sync.entities.execute import EntityResult


KIND = click.Choice(KINDS)
ACTORS = ("agent", "person", "maintainer")


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
        answer_done(context, done, title)


def writing(actor: Actor) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds the options of a command that writes, passed to it as an `EntityCall`; `actor` is the default."""
    options = (
        click.option("--actor", type=click.Choice(ACTORS), default=actor, show_default=True, help="Who does it."),
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


def answer_done(context: Context, done: EntityResult, title: str) -> None:
    """Prints the result of an operation."""

    def show() -> None:
        again = "; this key was used before, nothing was written" if done.replayed else ""
        approving = f"; approving it {done.effect}" if done.effect else ""
        click.echo(" ".join(filter(None, [title, done.section])) + approving + again)
        click.secho(f"  {display(done.path)}\n  {done.token}", dim=True)
        for warning in done.warnings:
            click.secho(f"  {warning}", fg="yellow")
        show_redactions(done.redactions)

    context.say(done.waiting)
    context.answer(done.document(), show)
