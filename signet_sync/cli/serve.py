"""`mcp` and `ui`: serve an agent's memory as tools to a coding agent, and the workspace to a browser.

The servers are loaded in the functions.
"""

from __future__ import annotations

import os
import sys

import click

from signet_sync.cli.main import Context
from signet_sync.cli.parsing import command
from signet_sync.errors import UsageError, extra_hint
from signet_sync.formats.ids import require_agent
from signet_sync.storage.files import require_root


@command("--agent")
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
def mcp(context: Context, scope: str, read_only: bool, tools: str) -> int:
    """Serve an agent's memory as MCP tools over stdin and stdout, for a coding agent that starts this command.

    See docs/mcp.md for configurations to copy.
    """
    from signet_sync.mcp_server import server
    from signet_sync.mcp_server.memory import ServedMemory

    agent = context.agent
    require_agent(agent)
    context.require_database_file()
    context.log_to_person()
    place, shared = context.place(anyway=True), scope == "shared"
    memory = ServedMemory(place, agent, shared=shared, read_only=read_only, all_tools=tools == "all")
    return server.serve(memory)


@command("--agent", "--json")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="The port (default: any free port)."
)
@click.option("--read-only", is_flag=True, help="Show everything, change nothing: without the buttons that act.")
@click.option("--no-open", is_flag=True, help="Print the address without opening a browser.")
def ui(context: Context, port: int, read_only: bool, no_open: bool) -> None:
    """View the workspace in a browser, and act on it: what it contains, and what is wrong. Ctrl-C ends it.

    The page changes nothing before you confirm what it says will happen. It is served on 127.0.0.1 only, and opens with
    the printed address: anyone with that address and an account on this machine can read and change the workspace.
    """
    require_agent(context.agent)
    require_root(context.root)
    context.require_database_file()
    try:
        from signet_sync.web.app import serve
        from signet_sync.web.request import Site
    except ImportError as error:
        if (error.name or "").startswith("signet_sync"):
            raise
        message = f"the page needs {error.name}, which is not installed"
        raise UsageError(message, hint=extra_hint("ui"), code="extra-missing") from None
    context.log_to_person()

    def announce(url: str, opening: str, bound: int) -> None:
        context.answer({"url": url, "port": bound, "pid": os.getpid()}, url)
        sys.stdout.flush()
        if not context.as_json and sys.stdout.isatty():
            context.say("Ctrl-C ends it")
            if not no_open:
                _open(opening)

    serve(Site(context.place(), context.agent), port, announce, read_only=read_only)


def _open(address: str) -> None:
    """Opens the address in a graphical browser; one in the terminal would take over this command's terminal."""
    import threading
    import webbrowser

    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        # Some browsers block until the page has loaded, and the page is served by this process.
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
