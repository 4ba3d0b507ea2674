"""`status`: reports whether the agent is alive, what is indexed and what is wrong; recognises a stale heartbeat."""

from __future__ import annotations

import os

import click

from signet_sync.admin import status_line
from signet_sync.admin.status import healthy, status_document
from signet_sync.cli import status_watch
from signet_sync.cli.formats import status as formats_status
from signet_sync.cli.main import Context, emit, json_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.errors import DatabaseError, WorkspaceError
from signet_sync.storage.safe_paths import require_root
from signet_sync.sync.read_only import require_index


@click.command(cls=Command)
@click.option(
    "--check", is_flag=True, help="Exit 1 if no agent is running, it is halted, or its last full pass is too old."
)
@click.option("--watch", is_flag=True, help="Repeat until Ctrl-C; in a pipe print one line per change.")
@click.option(
    "--every",
    type=click.FloatRange(0.1, 3600),
    metavar="SECONDS",
    help="Time between two updates of --watch (default: 2).",
)
@click.option(
    "--prometheus", is_flag=True, help="Print Prometheus' text format, for node_exporter's textfile collector."
)
@click.option("--line", is_flag=True, help="Print one short line, for prompts and status bars; always exit with 0.")
@json_option
@pass_context
def status(context: Context, check: bool, watch: bool, every: float | None, prometheus: bool, line: bool) -> int:
    """Show the state of the agent, the last pass, counts, open violations and sizes."""
    if watch + prometheus + check + line > 1 or ((prometheus or line) and context.as_json):
        raise click.UsageError(
            "--watch, --prometheus, --check and --line cannot be combined, nor --prometheus or --line and --json"
        )
    if line:
        click.echo(status_line.line(context.root, context.chosen_database))
        return 0
    if every is not None and not watch:
        raise click.UsageError("--every needs --watch")
    if watch:
        return status_watch.watch(lambda: status_document(context.place()), every or 2.0, as_json=context.as_json)
    document = status_document(context.place())
    if context.as_json:
        emit(document)
    elif prometheus:
        click.echo(formats_status.prometheus(document, healthy=healthy(document)), nl=False)
    else:
        for text in formats_status.lines(document):
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
