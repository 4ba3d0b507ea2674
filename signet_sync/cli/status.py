"""`status`: reports whether the agent is alive, what is indexed and what is wrong; recognises a stale heartbeat."""

from __future__ import annotations

import os

import click

from signet_sync.admin.status import healthy, status_document
from signet_sync.cli.formats.status import lines
from signet_sync.cli.main import Context, emit, json_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.errors import DatabaseError, WorkspaceError
from signet_sync.storage.safe_paths import require_root
from signet_sync.sync.read_only import require_index


@click.command(cls=Command)
@click.option(
    "--check", is_flag=True, help="Exit 1 if no agent is running, it is halted, or its last full pass is too old."
)
@json_option
@pass_context
def status(context: Context, check: bool) -> int:
    """Show the state of the agent, the last pass, counts, open violations and sizes."""
    document = status_document(context.place())
    if context.as_json:
        emit(document)
    else:
        for text in lines(document):
            click.echo(text)
    if not document["running"]:
        # The state folder's part was printed already; an agent that is alive waits for its workspace.
        try:
            require_root(context.root)
            chosen = context.chosen_database
            if chosen not in (None, ":memory:") and not os.path.exists(chosen):
                require_index(context.place())
        except (WorkspaceError, DatabaseError) as error:
            if context.as_json:  # the document was printed, and contains the reason
                return error.exit_code
            raise
    return 1 if check and not healthy(document) else 0
