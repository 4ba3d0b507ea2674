"""`ui`: serves the web page for people, on this machine only."""

from __future__ import annotations

import os
import sys

import click

from signet_sync.cli.main import Context, agent_option, emit, json_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.errors import UsageError, extra_hint
from signet_sync.formats.ids import require_agent
from signet_sync.storage.durable import private_folder
from signet_sync.storage.files import require_root

_INSTALL = extra_hint("ui")


@click.command(cls=Command)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="The port (default: any free port)."
)
@click.option("--read-only", is_flag=True, help="Show everything, change nothing: without the buttons that act.")
@click.option("--no-open", is_flag=True, help="Print the address without opening a browser.")
@agent_option
@json_option
@pass_context
def ui(context: Context, port: int, read_only: bool, no_open: bool) -> int:
    """View the workspace in a browser, and act on it: what it contains, and what is wrong. Ctrl-C ends it.

    The page changes nothing before you confirm what it says will happen. It is served on 127.0.0.1 only, and opens with
    the printed address: anyone with that address and an account on this machine can read and change the workspace.
    """
    require_agent(context.agent)
    require_root(context.root)
    context.require_database_file()
    try:
        from signet_sync.web.request import Site
        from signet_sync.web.server import serve
    except ImportError as error:
        if (error.name or "").startswith("signet_sync"):
            raise
        raise UsageError(
            f"the page needs {error.name}, which is not installed", hint=_INSTALL, code="extra-missing"
        ) from None
    context.log_to_person()
    if not read_only:
        _log_actions(context)

    def announce(url: str, opening: str, bound: int) -> None:
        if context.as_json:
            emit({"url": url, "port": bound, "pid": os.getpid()})
        else:
            click.echo(url)
        sys.stdout.flush()
        if not context.as_json and sys.stdout.isatty():
            context.say("Ctrl-C ends it")
            if not no_open:
                _open(opening)

    serve(Site(context.place(), context.agent), port, announce, read_only=read_only)
    return 0


def _log_actions(context: Context) -> None:
    """Logs to a file, too; it is created when an action is confirmed."""
    from signet_sync import log  # loads loguru

    settings, folder = context.settings(anyway=True), context.state()
    if os.path.isdir(folder.path):
        private_folder(folder.logs)
    log.log_to_file(os.path.join(folder.logs, "ui.log"), settings.log_level, delay=True)


def _open(address: str) -> None:
    """Opens the address in a graphical browser; one in the terminal would take over this command's terminal."""
    import threading
    import webbrowser

    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        # Some browsers block until the page has loaded, and the page is served by this process.
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
