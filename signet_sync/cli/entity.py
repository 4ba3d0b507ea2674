"""`entity`: curated files about the user, parts of a subject and relationships."""

from __future__ import annotations

import click

from signet_sync.cli import entity_reading as reading
from signet_sync.cli import entity_writing as writing
from signet_sync.cli.entity_input import apply_


class _AsGiven(click.Group):
    """Lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


_HELP = """Keep curated files about the user, parts of a subject and relationships.

\b
ID       an entity's id or its beginning (six characters or more), the words in its folder's
         name, or its title
SECTION  a heading in any case, or its anchor; of the notes notes/inbox, notes/focus and
         notes/parking-lot

Every change is an event in entities/ledger; nothing is deleted. docs/entities.md has the whole of it.
"""


@click.group(cls=_AsGiven, help=_HELP, short_help="Keep curated files about people and parts.")
def entity() -> None:
    pass


@click.group(short_help="What sections there are.")
def schema() -> None:
    """What sections there are: the maintainer's."""


schema.add_command(writing.promote)
for _command in (
    writing.create,
    reading.list_,
    reading.show,
    writing.set_,
    writing.append,
    writing.prune,
    writing.status,
    writing.rename,
    writing.deprecate,
    writing.pin,
    writing.unpin,
    writing.lock,
    writing.unlock,
    writing.propose,
    writing.approve,
    writing.reject,
    apply_,
    reading.log,
    reading.lint,
    reading.verify,
    reading.replay,
    reading.drift,
    writing.resolve,
    schema,
):
    entity.add_command(_command)
