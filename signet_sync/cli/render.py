"""`render`: prints or writes an agent's page."""

from __future__ import annotations

import click

from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.errors import SignetSyncError, UsageError
from signet_sync.formats.paths import head_page
from signet_sync.pages import memory_page_writer
from signet_sync.storage import state_dir
from signet_sync.sync.publishing import publish_pages
from signet_sync.sync.read_only import require_index
from signet_sync.sync.store import counts


@click.command(cls=Command)
@click.option("--write", is_flag=True, help="Write the page instead of printing it.")
@agent_option
@now_option
@json_option
@pass_context
def render(context: Context, write: bool) -> int:
    """Print the generated text of an agent's MEMORY.md from the present index."""
    if not write:
        require_index(context.place())
    with context.opened(touch_nothing=not write) as workspace:
        known = counts.agents(workspace.database)
        if context.agent not in known:
            raise UsageError(
                f"agent {context.agent!r} has no indexed artifact",
                hint=f"known agents: {', '.join(known) or 'none yet; run signet-sync reindex'}",
                code="unknown-agent",
            )
        changed = False
        if write:
            with state_dir.workspace_lock(workspace.state):
                outcome = publish_pages(workspace, agents={context.agent}, now_us=context.now_us)
            if outcome.held or outcome.trouble:
                raise SignetSyncError(
                    outcome.held or outcome.trouble[0], path=head_page(context.agent), hint="see signet-sync status"
                )
            changed = outcome.pages[context.agent].changed
        rendered, in_window, _ = memory_page_writer.compose(workspace, context.agent, context.now_us)
    path = head_page(context.agent)
    document = {
        "agent_id": context.agent,
        "memory_md": path,
        "changed": changed,
        "sessions_in_window": in_window,
        "rows_rendered": rendered.rows,
        "rows_clipped": rendered.clipped,
        "tokens": rendered.tokens,
        "text": rendered.text,
    }

    def show() -> None:
        if write:
            context.say(f"{path} {'written' if changed else 'unchanged'}")
        else:
            click.echo(rendered.text)

    context.answer(document, show)
    return 0
