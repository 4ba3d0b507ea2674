"""`eject`: leaves a workspace cleanly, after a person has seen what is deleted and agreed."""

from __future__ import annotations

import click

from signet_sync.admin import eject as ejection
from signet_sync.admin.eject import Ejected, EjectPlan
from signet_sync.cli.main import (
    Context,
    confirm,
    json_option,
    now_option,
    pass_context,
    show_by_hand,
    yes_option,
)
from signet_sync.cli.parsing import Command
from signet_sync.formats.paths import display
from signet_sync.text.phrases import count_noun

# What exists only in the state folder: singular and plural.
_ONLY_HERE = {
    "memories": ("memory", "memories"),
    "promotions": ("promotion", "promotions"),
    "recall_events": ("recall hit", "recall hits"),
    "running_sessions": ("running session", "running sessions"),
    "given_up": ("session that could not be captured", "sessions that could not be captured"),
    "originals": ("original of a changed or missing file", "originals of changed or missing files"),
}

_UNMARKED = "its generated text stays, as ordinary markdown"


@click.command(cls=Command)
@yes_option
@click.option("--keep-state", is_flag=True, help="Keep the state folder: database, seals, backups, logs.")
@click.option("--dry-run", is_flag=True, help="Show what would be done.")
@now_option
@json_option
@pass_context
def eject(context: Context, yes: bool, keep_state: bool, dry_run: bool) -> int:
    """Detach signet-sync from this workspace: service, hooks and state folder are removed, MEMORY.md stays.

    First the service is stopped and removed, hooks and MCP server are removed from every harness that has them for this
    workspace, and captured sessions that wait are written. Then MEMORY.md loses its two markers and becomes ordinary
    markdown. Last, the state folder is deleted, unless you keep it: memories and other native rows exist nowhere
    else (signet-sync backup create FILE saves them).

    memory/ with its tombstones, entities/, a git history and your settings stay untouched. If it is interrupted, run
    the same command again. signet-sync reindex starts over, below the text that MEMORY.md then contains.
    """
    plan = ejection.plan(context.root, context.database_path())

    def show_plan() -> None:
        _show_plan(context, plan, keep_state=keep_state)

    def show_preview() -> None:
        show_plan()
        click.echo("nothing was done (--dry-run)")

    if dry_run:
        document = {
            "workspace": context.root,
            "dry_run": True,
            "services": [unit.name for unit in plan.services],
            "hooks": list(plan.harnesses),
            "pages": list(plan.pages),
            "state": plan.state,
            "only_here": dict(plan.only_here),
            "in_the_way": None if plan.in_the_way is None else plan.in_the_way.message,
        }
        context.answer(document, show_preview)
        return 0
    if plan.in_the_way is not None:
        raise plan.in_the_way
    if plan.is_empty and not context.as_json:
        click.echo(f"nothing of signet-sync is left in {display(context.root)}")
        return 0
    if not yes:
        confirm(context, "detach from this workspace?", yes=yes, listing=show_plan)
        if plan.state and not keep_state:
            keep_state = not click.confirm("also delete the state folder?", err=True)
    done = ejection.eject(
        context.root,
        context.settings(),
        now_us=context.now_us,
        database=context.chosen_database,
        keep_state=keep_state,
    )
    document = {
        "workspace": context.root,
        "dry_run": False,
        "services": [unit.path for unit in done.services],
        "hooks": [outcome.harness for outcome in done.hooks],
        "pages": list(done.pages),
        "state_deleted": done.state,
        "by_hand": done.by_hand,
        "notes": list(done.notes),
    }
    context.answer(document, lambda: _show(context, done, plan, keep_state=keep_state))
    return 0


def _show_plan(context: Context, plan: EjectPlan, *, keep_state: bool) -> None:
    click.secho(f"detaching from {display(context.root)}", bold=True)
    if plan.in_the_way is not None:
        click.secho(f"  {plan.in_the_way.message}: {plan.in_the_way.hint}", fg="yellow")
    for unit in plan.services:
        click.echo(f"  service: {unit.name} is stopped and removed")
    for harness in plan.harnesses:
        click.echo(f"  hooks and MCP server: removed from {harness}'s settings")
    for path in plan.pages:
        click.echo(f"  {path}: {_UNMARKED}")
    if plan.state:
        kept = "stays (--keep-state)" if keep_state else "is deleted, if you agree: database, seals, backups, logs"
        click.echo(f"  {display(plan.state)}: {kept}")
        if plan.only_here and not keep_state:
            only_here = ", ".join(count_noun(count, *_ONLY_HERE[name]) for name, count in plan.only_here.items())
            click.secho(f"    these exist nowhere else: {only_here}", fg="yellow")
            if plan.only_here.keys() & {"memories", "promotions", "recall_events"}:
                click.secho(f"    to save them first: {context.command_line('backup create FILE')}", fg="yellow")
            if "given_up" in plan.only_here:
                click.secho(f"    why they failed: {context.command_line('logs intake')}", fg="yellow")
            if "originals" in plan.only_here:
                click.secho(f"    to restore files first: {context.command_line('violations list')}", fg="yellow")
    if plan.is_empty:
        click.echo("  nothing of signet-sync is left")


def _show(context: Context, done: Ejected, plan: EjectPlan, *, keep_state: bool) -> None:
    for unit in done.services:
        for step in unit.steps:
            click.echo(f"  {step}")
    for outcome in done.hooks:
        click.echo(f"  hooks and MCP server: removed from {outcome.harness}'s settings")
    for path in done.pages:
        click.echo(f"  {path}: {_UNMARKED}")
    if done.state:
        click.echo(f"  deleted {display(done.state)}")
    elif plan.state and keep_state:
        click.echo(f"  the state folder stays: {display(plan.state)}")
    for note in done.notes:
        click.secho(f"  {display(note)}", fg="yellow")
    show_by_hand(done.by_hand)
    if done.hooks:
        click.echo("close agents that are open now: they still call the hooks that they started with;")
        click.echo("run eject again to remove what that leaves")
    click.echo(f"{display(context.root)} is detached; to use it again: {context.command_line('reindex')}")
