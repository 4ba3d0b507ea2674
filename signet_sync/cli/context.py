"""`context`: prints the context that a session gets at its start or at a prompt."""

from __future__ import annotations

import click

from signet_sync.cli.main import Context, agent_option, emit, json_option, now_option, pass_context, resolve_now


@click.command()
@agent_option
@click.option(
    "--scope",
    type=click.Choice(["main", "shared"]),
    default="main",
    show_default=True,
    help="shared: without MEMORY.md, for a place that others read too.",
)
@click.option("--prompt", metavar="TEXT", help="What memory holds on this, in place of what is told at the start.")
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="At most so many tokens (else 10,000 characters, with --prompt 800 tokens).",
)
@now_option
@json_option
@pass_context
def context(
    context: Context, agent: str, scope: str, prompt: str | None, budget: int | None, now: str | None, as_json: bool
) -> int:
    """Print what a session of an agent is told at its start: its MEMORY.md and the workspace's identity files."""
    from signet_sync.formats.ids import require_agent
    from signet_sync.pages import operations as pages_operations
    from signet_sync.storage.safe_paths import require_root

    resolve_now(now)  # only files are read, but an invalid time is an error all the same
    require_agent(agent)
    require_root(context.root)
    shared = scope == "shared"
    composed = (
        pages_operations.at_start(context.place(), agent, shared=shared, budget=budget)
        if prompt is None
        else pages_operations.at_prompt(context.place(), agent, prompt, shared=shared, budget=budget)
    )
    for trouble in composed.troubles:
        context.say(f"warning: {trouble}")
    if as_json:
        emit(pages_operations.document(agent, composed, shared=shared))
    elif composed.text:
        click.echo(composed.text)
    elif composed.crowded:
        context.say(f"nothing of it fits into --budget {budget}: a larger one shows more")
    elif prompt is not None:
        context.say("memory holds nothing on this")
    else:
        missing = "no identity file" if scope == "shared" else "no MEMORY.md and no identity file"
        context.say(f"there is nothing to tell yet: {missing} in the workspace")
    return 0
