"""`context`: what a session is told at its start, printed as it would be."""

from __future__ import annotations

import click

from signet_sync.cli import Context, agent_option, emit, json_option, now_option, pass_context, resolve_now


@click.command()
@agent_option
@click.option(
    "--scope",
    type=click.Choice(["main", "shared"]),
    default="main",
    show_default=True,
    help="shared: without MEMORY.md, for a place that others read too.",
)
@click.option(
    "--budget", type=click.IntRange(min=1), metavar="TOKENS", help="At most so many tokens (else 10,000 characters)."
)
@now_option
@json_option
@pass_context
def context(context: Context, agent: str, scope: str, budget: int | None, now: str | None, as_json: bool) -> int:
    """Print what a session of an agent is told at its start: its MEMORY.md and the workspace's identity files."""
    from signet_sync.agent.context import compose
    from signet_sync.agent.workspace import require_root
    from signet_sync.context import LIMIT
    from signet_sync.contracts.identities import AGENT_ID
    from signet_sync.contracts.tokencount import estimate_tokens
    from signet_sync.errors import UsageError

    resolve_now(now)  # the files alone are asked, but a time that is none is a slip all the same
    if AGENT_ID.fullmatch(agent) is None:
        raise UsageError(
            f"{agent!r} is not the id of an agent",
            hint="use lower-case letters, digits, - and _, at most 64, a letter or digit first",
            code="agent-invalid",
        )
    require_root(context.root)
    composed = (
        compose(context.root, agent, shared=scope == "shared", limit=LIMIT)
        if budget is None
        else compose(context.root, agent, shared=scope == "shared", limit=budget, size=estimate_tokens)
    )
    for trouble in composed.troubles:
        context.say(f"warning: {trouble}")
    if as_json:
        emit(
            {
                "agent_id": agent,
                "scope": scope,
                "tokens": estimate_tokens(composed.text),
                "text": composed.text,
                "sources": composed.sources,
            }
        )
    elif composed.text:
        click.echo(composed.text)
    else:
        missing = "no identity file" if scope == "shared" else "no MEMORY.md and no identity file"
        context.say(f"there is nothing to tell yet: {missing} in the workspace")
    return 0
