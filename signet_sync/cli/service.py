"""`service`, `run`, `eject`: the agent as a service and in the foreground; detaching from a workspace.

What they act with is loaded in the functions of `run` and `eject`.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, show_by_hand
from signet_sync.cli.parsing import Group, command
from signet_sync.formats.paths import display
from signet_sync.host import service as services
from signet_sync.host import systemd
from signet_sync.host.service import service_name
from signet_sync.host.service_manager import ServiceChange
from signet_sync.sessions.model_proposals import proposer
from signet_sync.storage.files import require_root
from signet_sync.storage.locations import DEFAULT_WORKSPACE

if TYPE_CHECKING:
    from signet_sync.admin.eject import Parts

service = Group("service", help="Install the agent as a systemd or launchd service.")


def unit_of(context: Context) -> dict[str, Any]:
    """Returns what the unit of a workspace says, as `services.install` takes it."""
    # The console script beside this interpreter, else the module.
    script = os.path.join(os.path.dirname(sys.executable), "signet-sync")
    found = script if os.access(script, os.X_OK) else shutil.which("signet-sync")
    return {
        "network": proposer(context.settings(), os.environ) is not None,
        "executable": [os.path.abspath(found)] if found else [os.path.abspath(sys.executable), "-m", "signet_sync"],
        "workspace": context.root,
        "name": name_of(context),
    }


def name_of(context: Context) -> str:
    """Returns the name of the workspace's service."""
    return service_name(context.root, default=os.path.expanduser(DEFAULT_WORKSPACE))


@command("--json", of=service)
def install(context: Context) -> int:
    """Write, enable and start the unit of this workspace; say what was done and what is left to do by hand.

    Where neither systemd nor launchd answers nothing is written, and the exit code is 1.
    """
    done = services.install(**unit_of(context))
    context.answer(asdict(done) | {"lingering": systemd.is_lingering(os.environ)}, lambda: _show_change(done))
    return 0 if done.path else 1


@command("--json", of=service)
def uninstall(context: Context) -> None:
    """Stop, disable and remove the unit of this workspace; vault and state stay."""
    done = services.uninstall(name=name_of(context))
    context.answer(asdict(done), lambda: _show_change(done))


def _show_change(done: ServiceChange) -> None:
    for step in done.steps:
        click.echo(f"  {step}")
    show_by_hand(done.by_hand)


@command()
def run(context: Context) -> int:
    """Watch the vault and update the index and MEMORY.md until stopped (SIGTERM); changed settings are applied."""
    from signet_sync.app.daemon import Daemon, identify_installation, is_restarted

    context.require_database_file()
    if os.path.exists(context.root) and not os.path.isdir(context.root):
        require_root(context.root)  # it waits for a missing one only
    ours = identify_installation() if is_restarted(os.environ) else None
    return Daemon(context.root, context.chosen_database, verbose=context.verbose > 0, ours=ours).run()


# ── eject ──


@command("--yes", "--dry-run", "--now", "--json")
def eject(context: Context, yes: bool, dry_run: bool) -> None:
    """Detach signet-sync from this workspace: service, hooks and state folder are removed, MEMORY.md stays.

    Captured sessions that wait are written first. The state folder is deleted with the memories and other rows that
    exist nowhere else (signet-sync backup create FILE saves them).

    memory/ with its tombstones, entities/, a git history and your settings stay untouched. If it is interrupted, run
    the same command again. signet-sync reindex starts over, below the text that MEMORY.md then contains.
    """
    from signet_sync.admin import eject as ejection

    def show(parts: Parts) -> None:
        for name in parts.services:
            click.echo(f"  service: {name} is stopped and removed")
        for harness in parts.hooks:
            click.echo(f"  hooks and MCP server: removed from {harness}'s settings")
        for path in parts.pages:
            click.echo(f"  {path}: its generated text stays, as ordinary markdown")
        if parts.state:
            click.echo(f"  {display(parts.state)}: deleted, with database, seals, backups, logs")
        for note in parts.notes:
            click.secho(f"  {display(note)}", fg="yellow")
        show_by_hand(parts.by_hand)

    def show_plan() -> None:
        click.secho(f"detaching from {display(context.root)}", bold=True)
        show(plan)
        if plan.state:
            saving = context.command_line("backup create FILE")
            click.secho(f"    memories and originals exist nowhere else; to save them first: {saving}", fg="yellow")

    def show_done() -> None:
        show(done)
        if done.hooks:
            click.echo("agents that are open now still call the hooks: close them, then run eject again")
        click.echo(f"{display(context.root)} is detached; to use it again: {context.command_line('reindex')}")

    plan, about = ejection.plan(context.root), {"workspace": context.root, "dry_run": dry_run}
    if dry_run:
        context.answer(about | asdict(plan), show_plan)
        return
    context.confirm("detach from this workspace?", yes=yes, listing=show_plan)
    settings, database = context.settings(), context.chosen_database
    done = ejection.eject(context.root, settings, now_us=context.now_us, database=database)
    context.answer(about | asdict(done), show_done)
