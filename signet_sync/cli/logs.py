"""`logs`: prints where a log file is, its last lines, and new ones as they come."""

from __future__ import annotations

import os
import time
from collections import deque
from contextlib import ExitStack, suppress
from typing import TextIO

import click

from signet_sync.cli.main import Context, emit, json_option, pass_context
from signet_sync.cli.parsing import Command
from signet_sync.errors import UsageError
from signet_sync.storage.files import require_root

# What each is about, and what writes it.
_LOGS = {
    "agent": ("the agent", "it is written by signet-sync run"),
    "intake": ("captured transcripts", "it is written when a harness's session has ended"),
    "hook": ("failed hooks", "it is written when a hook fails"),
    "ui": ("actions of the web page", "it is written when an action of the web page was confirmed"),
}


@click.command(cls=Command)
@click.argument("log", type=click.Choice(list(_LOGS)), metavar="[agent|intake|hook|ui]", default="agent")
@click.option("-f", "--follow", is_flag=True, help="Print new lines as they are written.")
@click.option("-n", "--lines", type=click.IntRange(0, 10_000), default=20, show_default=True, help="Lines shown.")
@json_option
@pass_context
def logs(context: Context, log: str, follow: bool, lines: int) -> int:
    """Show where the logs are, and the last lines of one: of the agent, of captured transcripts, of failed hooks,
    of actions of the web page."""
    path = _path(context, log)
    if context.as_json:
        emit({"path": path, "exists": os.path.exists(path)})
        return 0
    click.echo(path, err=True)
    for name, (about, _) in _LOGS.items():
        other = _path(context, name)
        if name != log and os.path.exists(other):
            click.echo(f"{other} ({about}: signet-sync logs {name})", err=True)
    try:
        handle = open(path, encoding="utf-8", errors="replace")  # noqa: SIM115 - followed until interrupted
    except FileNotFoundError:
        require_root(context.root)
        raise UsageError("nothing was logged yet", path=path, hint=_LOGS[log][1], code="no-log") from None
    with handle:
        click.echo("".join(deque(handle, maxlen=lines)), nl=False)
        if follow:
            _follow(path, handle)
    return 0


def _path(context: Context, log: str) -> str:
    return os.path.join(context.state().logs, f"{'signet-sync' if log == 'agent' else log}.log")


def _follow(path: str, handle: TextIO) -> None:
    """Prints added lines, across rotations, until interrupted."""
    with ExitStack() as stack:
        while True:
            for line in handle:
                click.echo(line, nl=False)
            time.sleep(0.3)
            with suppress(FileNotFoundError):
                if os.stat(path).st_ino != os.fstat(handle.fileno()).st_ino:
                    for line in handle:
                        click.echo(line, nl=False)
                    handle = stack.enter_context(open(path, encoding="utf-8", errors="replace"))
