"""`mcp`: serves an agent's memory as tools of the Model Context Protocol."""

from __future__ import annotations

import sys

import click

from signet_sync.cli.main import Context, agent_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.formats.ids import require_agent
from signet_sync.mcp_server import memory as served
from signet_sync.mcp_server import server


@click.command(cls=Command)
@agent_option
@click.option(
    "--scope",
    type=click.Choice(["main", "shared"]),
    default="main",
    show_default=True,
    help="shared: for a place that others can read: only memories that are not private and the identity files, by the "
    "tool recall alone (--tools all: and context).",
)
@click.option("--read-only", is_flag=True, help="Leave out the tools that write.")
@click.option(
    "--tools",
    type=click.Choice(["core", "all"]),
    default="core",
    show_default=True,
    help="core: recall, expand, remember, forget, open. all: also search, context, history, entities and others. "
    "--scope shared leaves out all but recall and context.",
)
@pass_context
def mcp(context: Context, scope: str, read_only: bool, tools: str) -> int:
    """Serve an agent's memory as MCP tools over stdin and stdout, for a coding agent that starts this command.

    See docs/mcp.md for configurations to copy.
    """
    require_agent(context.agent)
    context.require_database_file()
    context.log_to_person()
    place, shared = context.place(anyway=True), scope == "shared"
    memory = served.ServedMemory(place, context.agent, shared=shared, read_only=read_only, all_tools=tools == "all")
    if sys.stdin.isatty():
        context.say(
            f"serving the memory of agent {context.agent} to a coding agent on stdin and stdout; Ctrl-C ends it"
        )
    return server.serve(memory)
