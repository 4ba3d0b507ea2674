"""`mcp`: serves an agent's memory as tools and resources of the Model Context Protocol."""

from __future__ import annotations

import os
import secrets
import sys
from typing import TYPE_CHECKING

import click

from signet_sync.cli.main import Context, agent_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.errors import ConfigError, UsageError
from signet_sync.formats.ids import require_agent
from signet_sync.host import local_port
from signet_sync.host.harness_settings.mcp_server import INSTALL

if TYPE_CHECKING:
    from signet_sync.mcp_server.memory import ServedMemory

_TOKEN = "SIGNET_MCP_TOKEN"  # noqa: S105 -- the name of a variable
_SHORTEST = 16  # characters of a token chosen by a person


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
@click.option("--http", is_flag=True, help="Serve HTTP on 127.0.0.1 instead of stdin and stdout.")
@click.option("--port", type=click.IntRange(1, 65535), help="The port of --http (default: any free port).")
@pass_context
def mcp(context: Context, scope: str, read_only: bool, tools: str, http: bool, port: int | None) -> int:
    """Serve an agent's memory as MCP tools over stdin and stdout, for a coding agent that starts this command.

    With --http the URL and a new token are printed to stderr; SIGNET_MCP_TOKEN sets one of yours. See docs/mcp.md for
    configurations to copy.
    """
    require_agent(context.agent)
    if port is not None and not http:
        raise UsageError("--port needs --http", hint="add --http")
    context.require_database_file()
    try:
        import mcp_types  # noqa: F401
    except ImportError:
        raise ConfigError("the server needs the extra `mcp`, which is not installed", hint=INSTALL) from None
    from signet_sync.mcp_server import memory as served  # of the extra
    from signet_sync.mcp_server import server, stdio

    context.log_to_person()
    place, shared = context.place(anyway=True), scope == "shared"
    memory = served.ServedMemory(place, context.agent, shared=shared, read_only=read_only, all_tools=tools == "all")
    if http:
        return _over_http(context, memory, port or 0)
    if sys.stdin.isatty():
        context.say(
            f"serving the memory of agent {context.agent} to a coding agent on stdin and stdout; Ctrl-C ends it"
        )
    return stdio.serve(server.made(memory))


def _over_http(context: Context, memory: ServedMemory, port: int) -> int:
    from signet_sync.mcp_server import http, server  # of the extra

    chosen = os.environ.get(_TOKEN)
    if chosen is not None and (len(chosen) < _SHORTEST or not chosen.isascii() or not chosen.isprintable()):
        raise UsageError(
            f"{_TOKEN} is not a valid token: it needs at least {_SHORTEST} letters and digits",
            hint="unset it to have one generated",
            code="token-invalid",
        )
    token = chosen or secrets.token_urlsafe(32)
    listener = local_port.listening(port, code="port-taken")
    url = f"http://{local_port.HOST}:{listener.getsockname()[1]}{http.PATH}"
    click.echo(f"serving the memory of agent {memory.agent_id} at {url}", err=True)
    if chosen is None:
        click.echo(f"Authorization: Bearer {token}", err=True)
    return http.serve(server.made(memory), listener, token)
