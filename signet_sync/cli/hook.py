"""`hook` for click: only its help, since `signet_sync.app.ask` runs it before click is imported."""

from __future__ import annotations

import click

from signet_sync.app.ask import run_hook as main
from signet_sync.capture.harnesses import registry
from signet_sync.cli.main import Context, pass_context
from signet_sync.cli.parsing import Command


@click.command(cls=Command, hidden=True)
@click.argument("harness", metavar=f"[{'|'.join(registry.names())}]")
@click.option("--strict", is_flag=True, help="Exit 2 and print the reason if the event could not be handled.")
@pass_context
def hook(context: Context, harness: str, strict: bool) -> int:
    """Handle an event of a harness's hook: its JSON on stdin, on stdout what the harness expects.

    Called by harnesses. It always exits with 0, so that no session fails because of it; errors are written to
    logs/hook.log of the state folder.
    """
    place = [] if context.workspace_flag is None else ["--workspace", context.workspace_flag]
    return main([*place, "hook", harness, *(["--strict"] if strict else [])])
