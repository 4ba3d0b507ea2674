"""`entity`: groups the commands for curated files about the user, parts and relationships."""

from __future__ import annotations

import click

from signet_sync.cli.entity import maintain, read, write
from signet_sync.cli.parsing import Group

_HELP = """Manage files about the user, parts and relationships between them.

\b
ID       an entity's id or its beginning (six characters or more), the words in its folder's
         name, or its title
SECTION  a heading in any case, or its anchor; of the notes notes/inbox, notes/focus and
         notes/parking-lot

Every change is an event in entities/ledger with the text before and after; nothing is deleted.
See docs/entities.md.
"""


@click.group(cls=Group, help=_HELP, short_help="Manage files about the user, parts and relationships.")
def entity() -> None:
    pass


for _command in (
    write.create,
    read.show,
    write.set_,
    write.append,
    write.prune,
    write.status,
    write.protect,
    write.review,
    read.log,
    write.undo,
    maintain.check,
    maintain.promote,
):
    entity.add_command(_command)
