"""`eject`: leaves a workspace cleanly, after a person has seen what is deleted and agreed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, agreed, counted, emit, json_option, now_option, pass_context, resolve_now
from signet_sync.formats.paths import display

if TYPE_CHECKING:
    from collections.abc import Sequence

    from signet_sync.admin.eject import Ejected, EjectPlan, PageChange

# What exists only in the state folder: singular and plural.
_ONLY_HERE = {
    "memories": ("memory", "memories"),
    "pins": ("pin", "pins"),
    "promotions": ("promotion", "promotions"),
    "recall_events": ("hit of recall", "hits of recall"),
    "running_sessions": ("session that still runs", "sessions that still run"),
    "given_up": (
        "session that hooks told of and that could not be taken in",
        "sessions that hooks told of and that could not be taken in",
    ),
    "originals": ("original of a file that changed or went", "originals of files that changed or went"),
}
_BECOMES = {
    "unmarked": "its generated text stays, as ordinary markdown",
    "emptied": "its generated text goes, what people wrote stays",
    "removed": "goes: all of it is generated",
}


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--keep-state", is_flag=True, help="Leave the state folder: database, seals, backups, logs.")
@click.option("--blank", is_flag=True, help="Take generated text out of all pages; what people wrote stays.")
@click.option("--dry-run", is_flag=True, help="Show what would be done.")
@now_option
@json_option
@pass_context
def eject(
    context: Context, yes: bool, keep_state: bool, blank: bool, dry_run: bool, now: str | None, as_json: bool
) -> int:
    """Leave this workspace: service, hooks and state folder go, MEMORY.md stays as ordinary markdown.

    First the service is stopped and removed, and hooks and MCP server are taken out of every harness that has them for
    this workspace; what was handed over and not yet written is written. Then MEMORY.md loses its two markers and is
    yours; with --blank it loses the generated text, and ledger/ and DREAMS.md go. At last the state folder is deleted,
    unless you keep it: memories, pins and the like exist nowhere else (signet-sync export FILE saves them).

    What is in memory/ (tombstones, too), entities/ and a git history stays untouched, and so do your settings. Killed
    in the middle, the same command finishes. signet-sync reindex starts anew, below the text that MEMORY.md has then.
    """
    from signet_sync.admin import eject

    instant = resolve_now(now)
    plan = eject.plan(context.root, context.database_path(), blank=blank)
    if dry_run:
        if as_json:
            emit({"workspace": context.root, "dry_run": True, **_planned(plan)})
        else:
            _show(context, plan, keep_state=keep_state)
            click.echo("nothing was done (--dry-run)")
        return 0
    if plan.in_the_way is not None:
        raise plan.in_the_way
    if plan.is_empty and not as_json:
        click.echo(f"nothing of signet-sync is left in {display(context.root)}")
        return 0
    if not yes:
        if not as_json and sys.stdin.isatty():
            _show(context, plan, keep_state=keep_state)
        agreed("leave this workspace?", yes=yes, as_json=as_json)
        if plan.state and not keep_state:
            keep_state = not click.confirm("delete the state folder, too?", err=True)
    done = eject.eject(
        context.root,
        context.settings(),
        now_us=instant,
        database=context.chosen_database,
        blank=blank,
        keep_state=keep_state,
    )
    if as_json:
        emit({"workspace": context.root, "dry_run": False, **_document(done)})
    else:
        _tell(context, done, plan, keep_state=keep_state)
    return 0


# ── for people ──


def _show(context: Context, plan: EjectPlan, *, keep_state: bool) -> None:
    click.secho(f"leaving {display(context.root)}", bold=True)
    if plan.in_the_way is not None:
        click.secho(f"  {plan.in_the_way.message}: {plan.in_the_way.hint}", fg="yellow")
    for unit in plan.services:
        click.echo(f"  service: {unit.name} is stopped and removed")
    for harness in plan.harnesses:
        click.echo(f"  hooks and MCP server: out of {harness}'s settings")
    _show_pages(plan.pages)
    if plan.state:
        kept = "stays (--keep-state)" if keep_state else "is deleted, if you agree: database, seals, backups, logs"
        click.echo(f"  {display(plan.state)}: {kept}")
        if plan.only_here and not keep_state:
            click.secho(f"    these exist nowhere else: {_counted(plan)}", fg="yellow")
            if plan.only_here.keys() & {"memories", "pins", "promotions", "recall_events"}:
                click.secho(f"    to save them first: {context.command_line('export FILE')}", fg="yellow")
            if "given_up" in plan.only_here:
                click.secho(f"    what was wrong with them: {context.command_line('logs intake')}", fg="yellow")
            if "originals" in plan.only_here:
                click.secho(f"    to heal files first: {context.command_line('violations list')}", fg="yellow")
    if plan.is_empty:
        click.echo("  nothing of signet-sync is left")


def _show_pages(pages: Sequence[tuple[str, PageChange]]) -> None:
    """Lists MEMORY.md and other pages one by one, the many pages of the session log as one."""
    ledger = [path for path, _ in pages if "ledger/" in path]
    for path, change in pages:
        if path not in ledger:
            click.echo(f"  {path}: {_BECOMES[change]}")
    if ledger:
        click.echo(f"  ledger/: its generated text goes out of {counted(len(ledger), 'page')}")


def _counted(plan: EjectPlan) -> str:
    return ", ".join(counted(count, *_ONLY_HERE[name]) for name, count in plan.only_here.items())


def _tell(context: Context, done: Ejected, plan: EjectPlan, *, keep_state: bool) -> None:
    for unit in done.services:
        for step in unit.steps:
            click.echo(f"  {step}")
    for outcome in done.hooks:
        click.echo(f"  hooks and MCP server: out of {outcome.harness}'s settings")
    _show_pages(done.pages)
    if done.state:
        click.echo(f"  deleted {display(done.state)}")
    elif plan.state and keep_state:
        click.echo(f"  the state folder stays: {display(plan.state)}")
    for note in done.notes:
        click.secho(f"  {display(note)}", fg="yellow")
    if done.by_hand:
        click.secho("left to do by hand:", bold=True)
        for line in done.by_hand:
            click.echo(f"  {line}")
    if done.hooks:
        click.echo("close agents that are open now: they still call the hooks that they started with;")
        click.echo("what that leaves, eject takes away when it is called again")
    click.echo(f"{display(context.root)} is yours as it is; to come back: {context.command_line('reindex')}")


# ── for programs ──


def _planned(plan: EjectPlan) -> dict[str, Any]:
    return {
        "services": [unit.name for unit in plan.services],
        "hooks": list(plan.harnesses),
        "pages": [{"path": path, "change": change} for path, change in plan.pages],
        "state": plan.state,
        "only_here": dict(plan.only_here),
        "in_the_way": None if plan.in_the_way is None else plan.in_the_way.message,
    }


def _document(done: Ejected) -> dict[str, Any]:
    return {
        "services": [unit.path for unit in done.services],
        "hooks": [outcome.harness for outcome in done.hooks],
        "pages": [{"path": path, "change": change} for path, change in done.pages],
        "state_deleted": done.state,
        "by_hand": done.by_hand,
        "notes": list(done.notes),
    }
