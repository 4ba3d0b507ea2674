"""`context`: prints the context that a session gets at its start or at a prompt."""

from __future__ import annotations

import click

from signet_sync.cli.main import Context, agent_option, json_option, now_option, pass_context
from signet_sync.formats.ids import require_agent
from signet_sync.pages import operations as pages_operations
from signet_sync.storage.safe_paths import require_root


@click.command()
@agent_option
@click.option(
    "--scope",
    type=click.Choice(["main", "shared"]),
    default="main",
    show_default=True,
    help="shared: without MEMORY.md, for a place that others can read.",
)
@click.option(
    "--prompt", metavar="TEXT", help="Print what memory contains about TEXT instead of the context at the start."
)
@click.option(
    "--budget",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="Most tokens (default: 10,000 characters, with --prompt 800 tokens).",
)
@now_option
@json_option
@pass_context
def context(context: Context, scope: str, prompt: str | None, budget: int | None) -> int:
    """Print the context that an agent's session gets at its start: its MEMORY.md and the workspace's identity files."""
    require_agent(context.agent)
    require_root(context.root)
    shared = scope == "shared"
    composed = (
        pages_operations.at_start(context.place(), context.agent, shared=shared, budget=budget)
        if prompt is None
        else pages_operations.at_prompt(context.place(), context.agent, prompt, shared=shared, budget=budget)
    )
    for trouble in composed.troubles:
        context.say(f"warning: {trouble}")

    def show() -> None:
        if composed.text:
            click.echo(composed.text)
        elif composed.crowded:
            context.say(f"no section fits into --budget {budget}; increase the budget")
        elif prompt is not None:
            context.say("memory contains nothing about this")
        else:
            missing = "no identity file" if shared else "no MEMORY.md and no identity file"
            context.say(f"no context yet: {missing} in the workspace")

    context.answer(pages_operations.document(context.agent, composed, shared=shared), show)
    return 0
