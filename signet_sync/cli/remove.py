"""`remove`: a session goes for good, after its files were listed and a person agreed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from signet_sync.cli import Context, agent_option, emit, json_option, now_option, pass_context, resolve_now

if TYPE_CHECKING:
    from signet_sync.agent.removal import Removal


@click.command()
@click.argument("session")
@click.option("--reason", help="Why; stands in the tombstone.")
@click.option("--dry-run", is_flag=True, help="List what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--undo", is_flag=True, help="Lift the tombstone; what was deleted stays deleted.")
@agent_option
@now_option
@json_option
@pass_context
def remove(
    context: Context,
    session: str,
    reason: str | None,
    dry_run: bool,
    yes: bool,
    undo: bool,
    agent: str,
    now: str | None,
    as_json: bool,
) -> int:
    """Remove a session to the last byte: an id covers that session, a key or token all of its sessions."""
    from signet_sync.agent import removal
    from signet_sync.agent.workspace import opened

    if reason is None and not dry_run and not undo:
        raise click.UsageError("give a --reason; it stands in the tombstone")
    instant = resolve_now(now)
    with opened(context.root, context.settings(), database=context.chosen_database, touch_nothing=dry_run) as workspace:
        if undo:
            token = removal.lift(workspace, agent, session)
            if as_json:
                emit({"agent_id": agent, "session_token": token, "lifted": True})
            else:
                click.echo(f"the tombstone of {token} is lifted; files that come back are indexed again")
            return 0
        plans = removal.plan(workspace, agent, session)
        if dry_run:
            _dry(plans, as_json)
            return 0
        _ask(plans, yes, as_json)
        done = [removal.remove(workspace, plan, reason or "", instant) for plan in plans]
    documents = [
        {
            "agent_id": d.agent_id,
            "session_token": d.session_token,
            "tombstone": d.tombstone,
            "removed_paths": list(d.removed_paths),
            "removed_rows": d.removed_rows,
            "git_history": d.git_history,
            "foreign": list(d.foreign),
        }
        for d in done
    ]
    if as_json:
        emit(documents[0] if len(documents) == 1 else {"removals": documents})
        return 0
    for d in done:
        click.echo(f"removed {len(d.removed_paths)} files and {d.removed_rows} rows of {d.session_token}")
        click.echo(f"  tombstone: {d.tombstone}")
        if d.git_history == "contains":
            click.secho("  the workspace's git history still holds the text", fg="yellow")
        for path in d.foreign:
            click.secho(f"  not ours, still holds text of it: {path}", fg="yellow")
    return 0


def _dry(plans: list[Removal], as_json: bool) -> None:
    if as_json:
        emit(
            {
                "dry_run": True,
                "removals": [
                    {
                        "agent_id": plan.agent_id,
                        "session_token": plan.session_token,
                        "session_ids": [ref.session_id for ref in plan.sessions],
                        "paths": list(plan.paths),
                    }
                    for plan in plans
                ],
            }
        )
        return
    _list(plans)
    click.echo("nothing was removed (--dry-run)")


def _list(plans: list[Removal]) -> None:
    for plan in plans:
        for ref in plan.sessions:
            click.secho(f"session {ref.session_id} ({ref.session_token})", bold=True, err=True)
        for path in plan.paths:
            click.echo(f"  {path}", err=True)


def _ask(plans: list[Removal], yes: bool, as_json: bool) -> None:
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise click.UsageError("removing asks first; give --yes where nobody can answer")
    _list(plans)
    files = sum(len(plan.paths) for plan in plans)
    click.confirm(f"remove {files} files for good?", abort=True, err=True)
