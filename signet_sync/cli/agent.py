"""`run`: runs the background agent in the foreground of this process."""

from __future__ import annotations

import os

import click

from signet_sync.app.daemon import Daemon, Options
from signet_sync.app.upgrade import Upgrade, is_restarted
from signet_sync.cli.main import Context, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.storage.files import require_root


@click.command(cls=Command)
@click.option("--interval", type=float, metavar="SECONDS", help="Time between two full passes.")
@click.option("--debounce", type=float, metavar="SECONDS", help="Quiet time after a change before a pass starts.")
@click.option("--no-watch", is_flag=True, help="Full passes only, without file-system events.")
@pass_context
def run(context: Context, interval: float | None, debounce: float | None, no_watch: bool) -> int:
    """Watch the vault and update the index and MEMORY.md until stopped (SIGTERM); changed settings are applied."""
    context.require_database_file()
    flags: dict[str, object] = {"interval": interval, "debounce": debounce}
    if no_watch:
        flags["watch_mode"] = "off"
    options = Options(context.root, context.chosen_database, flags, verbose=context.verbose > 0)
    if os.path.exists(context.root) and not os.path.isdir(context.root):
        require_root(context.root)  # it waits for a missing one only
    return Daemon(options, upgrade=Upgrade() if is_restarted(os.environ) else None).run()
