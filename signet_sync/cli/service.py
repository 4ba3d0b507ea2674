"""`service`: installs the agent as a service of systemd or launchd, one unit for each workspace."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, emit, json_option, pass_context

if TYPE_CHECKING:
    from signet_sync.host.service_manager import ServiceChange
    from signet_sync.settings.model import Settings


@click.group()
def service() -> None:
    """Install the agent as a service of systemd or launchd."""


def _parts(context: Context, *, system: bool) -> dict[str, Any]:
    from signet_sync.capture.stores.transcripts import homes
    from signet_sync.storage import state_dir

    del system
    settings = context.settings()
    tells = [os.path.expanduser(word) for word in settings.notify_command[:1]]
    return {
        "readable": [*homes(), *(os.path.dirname(program) for program in tells if os.path.isabs(program))],
        # A notification program usually sends its message over the network: to a mail or chat server.
        "network": _asks_a_model(settings, context.root) or bool(tells),
        "desktop": settings.notify_desktop,
        "executable": _executable(),
        "workspace": context.root,
        "state": state_dir.base(),
        "name": _name(context),
    }


def _name(context: Context) -> str:
    from signet_sync.host.service import service_name
    from signet_sync.settings.model import DEFAULT_WORKSPACE

    return service_name(context.root, default=os.path.expanduser(DEFAULT_WORKSPACE))


def _asks_a_model(settings: Settings, root: str) -> bool:
    from signet_sync.sessions.model_proposals import proposer

    return proposer(settings, root, os.environ) is not None


def _executable() -> list[str]:
    """Returns the program that the unit starts: the console script beside this interpreter, else the module."""
    script = os.path.join(os.path.dirname(sys.executable), "signet-sync")
    if os.access(script, os.X_OK):
        return [os.path.abspath(script)]
    found = shutil.which("signet-sync")
    if found:
        return [os.path.abspath(found)]
    return [os.path.abspath(sys.executable), "-m", "signet_sync"]


@service.command()
@click.option("--system", is_flag=True, help="A system unit (servers) instead of one of the user's own.")
@click.option("--linger", is_flag=True, help="Let your services run while you are logged out (loginctl enable-linger).")
@json_option
@pass_context
def install(context: Context, system: bool, linger: bool, as_json: bool) -> int:
    """Write, enable and start the unit of this workspace; say what was done and what is left to do by hand."""
    from signet_sync.host import service

    done = service.install(**_parts(context, system=system), system=system, linger=linger)
    lingers = service.lingering()
    if as_json:
        emit(_document(done) | {"lingering": lingers})
        return 0
    _tell(done)
    if done.kind == "systemd" and lingers is False and not linger:
        click.echo(
            "it runs while you are logged in; to keep it running after that: signet-sync service install --linger"
        )
    return 0


@service.command()
@click.option("--system", is_flag=True, help="The system unit.")
@json_option
@pass_context
def uninstall(context: Context, system: bool, as_json: bool) -> int:
    """Stop, disable and remove the unit of this workspace; vault and state stay."""
    from signet_sync.host import service

    done = service.uninstall(name=_name(context), system=system)
    if as_json:
        emit(_document(done))
    else:
        _tell(done)
    return 0


@service.command()
@json_option
@pass_context
def status(context: Context, as_json: bool) -> int:
    """The units of all workspaces."""
    from dataclasses import asdict

    from signet_sync.host import service

    units = service.installed()
    if as_json:
        emit({"services": [asdict(unit) for unit in units], "lingering": service.lingering()})
        return 0
    if not units:
        click.echo("no service is installed; signet-sync service install makes one for this workspace")
    words = {True: "active", False: "not running", None: "unknown"}
    for unit in units:
        click.echo(f"{unit.name}  {words[unit.active]}  {unit.workspace or '?'}\n  {unit.path}")
    return 0


@service.command("print")
@click.option("--system", is_flag=True, help="The system unit.")
@click.option("--launchd", is_flag=True, help="The launchd agent, whatever this machine is.")
@click.option("--on-failure", is_flag=True, help="The unit that tells you when an agent ended by an error.")
@pass_context
def print_(context: Context, system: bool, launchd: bool, on_failure: bool) -> int:
    """Print the unit that `install` would write."""
    from signet_sync.host import service, systemd

    kind: Any = "launchd" if launchd or (sys.platform == "darwin" and not system) else "systemd"
    if system:
        kind = "systemd-system"
    environment = {name: os.environ[name] for name in service.PASSED_ON if name in os.environ}
    if on_failure:
        if kind == "launchd":
            raise click.UsageError("launchd has no unit for that; the agent notifies you itself before it ends")
        text = systemd.render_failure(kind, executable=_executable(), environment=environment)
    else:
        text = service.render(kind, **_parts(context, system=system), environment=environment)
    click.echo(text, nl=False)
    return 0


def _document(done: ServiceChange) -> dict[str, Any]:
    return {
        "kind": done.kind,
        "path": done.path,
        "steps": list(done.steps),
        "by_hand": list(done.by_hand),
        "running": done.running,
    }


def _tell(done: ServiceChange) -> None:
    for step in done.steps:
        click.echo(f"  {step}")
    if done.by_hand:
        click.secho("left to do by hand:", bold=True)
        for line in done.by_hand:
            click.echo(f"  {line}")
