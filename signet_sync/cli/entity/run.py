"""Runs a command of `entity` that writes: one operation on an opened workspace, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, agent_option, emit, json_option, now_option, pass_context, resolve_now
from signet_sync.errors import UsageError

if TYPE_CHECKING:
    from signet_sync.entities.event_log.events import Actor
    from signet_sync.entities.results import EntityResult
    from signet_sync.sync.workspace import Workspace

ACTORS = ("agent", "person", "maintainer")


@contextmanager
def opened(context: Context) -> Iterator[Workspace]:
    """Opens the workspace for a command on entities; prints what happened meanwhile at the end."""
    from signet_sync.app.workspace import opened as open_it

    if context.chosen_database == ":memory:":
        raise UsageError(
            "the ledger's end is kept in mind by the database, and one in memory forgets it when the command ends",
            hint="leave --db :memory: out",
        )
    with open_it(context.root, context.settings(), database=context.chosen_database) as workspace:
        yield workspace
        for line in workspace.events:
            context.say(line)


@dataclass(frozen=True, slots=True)
class Call:
    """Agent, actor, time and idempotency key of a call, and the form of its answer."""

    context: Context
    agent: str
    actor: Actor
    now_us: int
    key: str | None
    as_json: bool

    @property
    def asked(self) -> dict[str, Any]:
        """The arguments that every operation takes."""
        return {"actor": self.actor, "now_us": self.now_us, "key": self.key}

    def do(self, said: str, act: Callable[[Workspace], EntityResult]) -> None:
        """Executes an operation and prints its result; `said` is the first text for a person."""
        with opened(self.context) as workspace:
            done = act(workspace)
        tell(self.context, done, said, as_json=self.as_json)


def calling(actor: Actor) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds the options of a command that writes, passed to it as a `Call`; `actor` is the default of `--actor`."""
    options = (
        click.option("--actor", type=click.Choice(ACTORS), default=actor, show_default=True, help="Who does it."),
        click.option("--key", metavar="K", help="The same key again gives the first answer and writes nothing."),
        agent_option,
        now_option,
        json_option,
        pass_context,
    )

    def add(command: Callable[..., None]) -> Callable[..., None]:
        def called(
            context: Context, actor: Actor, key: str | None, agent: str, now: str | None, as_json: bool, **own: Any
        ) -> None:
            command(Call(context, agent, actor, resolve_now(now), key, as_json), **own)

        made: Callable[..., None] = wraps(command)(called)
        for option in reversed(options):
            made = option(made)
        return made

    return add


def tell(context: Context, done: EntityResult, said: str, *, as_json: bool) -> None:
    """Prints the result, for a program or a person."""
    from signet_sync.entities.results import done_document
    from signet_sync.formats.paths import display

    if done.waiting:
        context.say(done.waiting)
    if as_json:
        emit(done_document(done))
        return
    again = "; this key was used for it before, nothing was written" if done.replayed else ""
    click.echo(" ".join(filter(None, [said, done.section])) + again)
    click.secho(f"  {display(done.path)}\n  {done.token}", dim=True)
    for warning in done.warnings:
        click.secho(f"  {warning}", fg="yellow")
    if done.redactions:
        rules = ", ".join(f"{rule} {count}" for rule, count in sorted(done.redactions.items()))
        click.echo(f"  redacted: {rules}")
