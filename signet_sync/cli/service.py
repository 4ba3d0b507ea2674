"""`service`: installs the agent as a service of systemd or launchd, one unit for each workspace."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import asdict
from typing import Any

import click

from signet_sync.cli.main import Context, json_option, pass_context, show_by_hand
from signet_sync.cli.parsing import Group
from signet_sync.host import service as services
from signet_sync.host.service import service_name
from signet_sync.host.service_manager import Kind, ServiceChange
from signet_sync.sessions.model_proposals import proposer
from signet_sync.settings.model import DEFAULT_WORKSPACE


@click.group(cls=Group)
def service() -> None:
    """Install the agent as a systemd or launchd service."""


def unit_of(context: Context) -> dict[str, Any]:
    """Returns what the unit of a workspace says, as `services.install` takes it."""
    return {
        "network": proposer(context.settings(), context.root, os.environ) is not None,
        "executable": _executable(),
        "workspace": context.root,
        "name": name_of(context),
    }


def name_of(context: Context) -> str:
    """Returns the name of the workspace's service."""
    return service_name(context.root, default=os.path.expanduser(DEFAULT_WORKSPACE))


def _executable() -> list[str]:
    """Returns the program that the unit starts: the console script beside this interpreter, else the module."""
    script = os.path.join(os.path.dirname(sys.executable), "signet-sync")
    if os.access(script, os.X_OK):
        return [os.path.abspath(script)]
    if found := shutil.which("signet-sync"):
        return [os.path.abspath(found)]
    return [os.path.abspath(sys.executable), "-m", "signet_sync"]


@service.command()
@click.option("--print", "only_print", is_flag=True, help="Print the unit instead.")
@json_option
@pass_context
def install(context: Context, only_print: bool) -> int:
    """Write, enable and start the unit of this workspace; say what was done and what is left to do by hand.

    Where neither systemd nor launchd answers nothing is written, and the exit code is 1.
    """
    if only_print:
        kind: Kind = "launchd" if sys.platform == "darwin" else "systemd"
        environment = {name: os.environ[name] for name in services.PASSED_ON if name in os.environ}
        unit = services.render(kind, **unit_of(context), environment=environment)
        context.answer({"unit": unit}, lambda: click.echo(unit, nl=False))
        return 0
    done = services.install(**unit_of(context))
    context.answer(asdict(done) | {"lingering": services.lingering()}, lambda: _show(done))
    return 0 if done.path else 1


@service.command()
@json_option
@pass_context
def uninstall(context: Context) -> int:
    """Stop, disable and remove the unit of this workspace; vault and state stay."""
    done = services.uninstall(name=name_of(context))
    context.answer(asdict(done), lambda: _show(done))
    return 0


def _show(done: ServiceChange) -> None:
    for step in done.steps:
        click.echo(f"  {step}")
    show_by_hand(done.by_hand)
