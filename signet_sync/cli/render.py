"""`render`: prints an agent's page."""

from __future__ import annotations

import click

from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.errors import UsageError
from signet_sync.formats.paths import head_page
from signet_sync.pages.stage import compose_page
from signet_sync.sync.read_only import require_index
from signet_sync.sync.store import counts


@click.command(cls=Command)
@agent_option
@now_option
@json_option
@pass_context
def render(context: Context) -> int:
    """Print the generated text of an agent's MEMORY.md from the present index."""
    require_index(context.place())
    with context.opened(touch_nothing=True) as workspace:
        known = counts.agents(workspace.database)
        if context.agent not in known:
            raise UsageError(
                f"agent {context.agent!r} has no indexed artifact",
                hint=f"known agents: {', '.join(known) or 'none yet; run signet-sync reindex'}",
                code="unknown-agent",
            )
        rendered, in_window, _ = compose_page(workspace, context.agent, context.now_us)
    document = {
        "agent_id": context.agent,
        "memory_md": head_page(context.agent),
        "sessions_in_window": in_window,
        "rows_rendered": rendered.rows,
        "rows_clipped": rendered.clipped,
        "tokens": rendered.tokens,
        "text": rendered.text,
    }

    context.answer(document, lambda: click.echo(rendered.text))
    return 0
