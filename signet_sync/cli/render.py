"""`render`: prints or writes an agent's page."""

from __future__ import annotations

import click

from signet_sync.cli.main import Context, agent_option, emit, json_option, now_option, pass_context, resolve_now


@click.command()
@click.option("--write", is_flag=True, help="Write the page instead of printing it.")
@agent_option
@now_option
@json_option
@pass_context
def render(context: Context, write: bool, agent: str, now: str | None, as_json: bool) -> int:
    """Print the generated text of an agent's MEMORY.md from the index as it is."""
    from signet_sync.app.workspace import opened
    from signet_sync.errors import SignetSyncError, UsageError
    from signet_sync.formats.paths import head_page
    from signet_sync.pages import memory_page_writer
    from signet_sync.storage import state_dir
    from signet_sync.sync.publishing import publish_pages
    from signet_sync.sync.read_only import require_index
    from signet_sync.sync.store import counts

    instant = resolve_now(now)
    if not write:
        require_index(context.place())
    with opened(
        context.root, context.settings(), database=context.chosen_database, touch_nothing=not write
    ) as workspace:
        known = counts.agents(workspace.database)
        if agent not in known:
            raise UsageError(
                f"agent {agent!r} has no indexed artifact",
                hint=f"known agents: {', '.join(known) or 'none yet; run signet-sync reindex'}",
                code="unknown-agent",
            )
        changed = False
        if write:
            with state_dir.workspace_lock(workspace.state):
                outcome = publish_pages(workspace, agents={agent}, now_us=instant)
            if outcome.held or outcome.trouble:
                raise SignetSyncError(
                    outcome.held or outcome.trouble[0], path=head_page(agent), hint="see signet-sync status"
                )
            changed = outcome.pages[agent].changed
        rendered, in_window, _ = memory_page_writer.compose(workspace, agent, instant)
    if as_json:
        emit(
            {
                "agent_id": agent,
                "memory_md": head_page(agent),
                "changed": changed,
                "sessions_in_window": in_window,
                "rows_rendered": rendered.rows,
                "rows_clipped": rendered.clipped,
                "tokens": rendered.tokens,
                "text": rendered.text,
            }
        )
    elif write:
        context.say(f"{head_page(agent)} {'written' if changed else 'unchanged'}")
    else:
        click.echo(rendered.text)
    return 0
