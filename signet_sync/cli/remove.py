"""`remove`: removes a session for good, after listing its files and asking."""

from __future__ import annotations

import sys
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import (
    Context,
    agent_option,
    agreed,
    counted,
    emit,
    json_option,
    now_option,
    pass_context,
    resolve_now,
)
from signet_sync.formats.paths import display

if TYPE_CHECKING:
    from collections.abc import Sequence

    from signet_sync.errors import UsageError
    from signet_sync.history.purge import Begun
    from signet_sync.history.purge_plan import PurgeResult
    from signet_sync.privacy.remove import RemoveResult, SessionRemoval, Undo
    from signet_sync.sync.workspace import Workspace


@click.command()
@click.argument("session")
@click.option("--reason", help="Why; stands in the tombstone.")
@click.option("--dry-run", is_flag=True, help="List what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--quoting",
    type=click.Choice(["redact", "keep"]),
    help="Where other sessions quote it: take the passages out of their files, or leave them.",
)
@click.option(
    "--purge-history", is_flag=True, help="Rewrite the workspace's git history, too: no object of it keeps a word."
)
@click.option(
    "--undo", is_flag=True, help="Lift the removal: the session may come back; what was deleted stays deleted."
)
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
    quoting: str | None,
    purge_history: bool,
    undo: bool,
    agent: str,
    now: str | None,
    as_json: bool,
) -> int:
    """Remove a session to the last byte: an id covers that session, a key or token all of its sessions.

    Other sessions of the agent may hold passages of it: words that it said and nobody before. Their files are listed
    (quoted_in), and nothing is removed until --quoting says what becomes of them: redact puts [REDACTED:removed] in
    the place of each passage, with a new hash and seal; keep leaves them. Code and what tools gave back do not count,
    nor does what stands in many sessions.

    --purge-history rewrites every commit that holds it, empties the reflogs and deletes every object that nothing
    needs any more; hashes change, and what you pushed or cloned is yours to clean. What people wrote and quotes the
    session stays, and is named. Where the history cannot be rewritten, the session is removed all the same, and the
    answer says why and what to do. One that was removed earlier is purged all the same: give its key, token or id.

    --undo takes the session's name off the list of what must not come back, here and on every machine that the vault is
    synced to. It brings nothing back by itself: put the files into memory/ again (a backup of yours, git, another
    machine), or let the harness's transcript be read again, and they are indexed. An id lifts that session, a key or
    token all of its sessions.
    """
    from signet_sync.app.workspace import opened
    from signet_sync.privacy import quotes, remove
    from signet_sync.sync.read_only import require_index
    from signet_sync.text.sanitizer import sanitize_line

    if undo and (reason is not None or purge_history):
        raise click.UsageError("--undo goes with neither --reason nor --purge-history")
    if undo and quoting is not None:
        raise click.UsageError("--undo goes without --quoting")
    reason = sanitize_line(reason or "") or None  # a blank reason counts as none
    instant = resolve_now(now)
    if dry_run:
        require_index(context.place())
    with opened(context.root, context.settings(), database=context.chosen_database, touch_nothing=dry_run) as workspace:
        if undo:
            return _undo(context, workspace, agent, session, dry_run=dry_run, yes=yes, as_json=as_json)
        if not dry_run:
            refresh(workspace, instant)
        plans = remove.plan(workspace, agent, session, purge_history=purge_history)
        quoted = quotes.quoted(workspace, plans)
        if dry_run:
            purges = [remove.preview(workspace, plan, instant) for plan in plans] if purge_history else []
            _dry(plans, quoted.paths, purges, as_json)
            return 0
        if reason is None and not all(plan.earlier for plan in plans):
            raise click.UsageError(_NO_REASON)
        if quoted.paths and quoting is None:
            raise _quoted(quoted.paths)
        _ask(plans, quoted.paths if quoting == "redact" else (), yes, as_json)
        rewrite = quotes.redact(workspace, quoted, reason or "", instant) if quoting == "redact" else remove.unchanged
        remove_one = partial(remove.remove, purge_history=purge_history, quoted_in=quoted.paths, rewrite=rewrite)
        done = [remove_one(workspace, plan, reason or "", instant) for plan in plans]
    documents = [_document(one) for one in done]
    if as_json:
        emit(documents[0] if len(documents) == 1 else {"removals": documents})
    else:
        for one, plan in zip(done, plans, strict=True):
            _tell(one, earlier=plan.earlier, redacted=quoting == "redact")
    return 1 if any(one.pending or is_waiting(one.purged) for one in done) else 0


def _document(done: RemoveResult) -> dict[str, object]:
    return {
        "agent_id": done.agent_id,
        "session_token": done.session_token,
        "tombstone": done.tombstone,
        "removed_paths": list(done.removed_paths),
        "pending": list(done.pending),
        "removed_rows": done.removed_rows,
        "git_history": done.git_history,
        "foreign": list(done.foreign),
        "quoted_in": list(done.quoted_in),
        **({} if done.purged is None else {"purged": purged_document(done.purged)}),
        **({"memories": list(done.memories)} if done.memories else {}),
    }


def _quoted(paths: Sequence[str]) -> UsageError:
    from signet_sync.errors import UsageError

    shown = ", ".join(paths[:4]) + (f" and {len(paths) - 4} more" if len(paths) > 4 else "")
    return UsageError(
        f"it is quoted in {counted(len(paths), 'file')} of other sessions: {shown}; nothing was removed",
        hint="--quoting redact takes the passages out of them, --quoting keep leaves them; --dry-run lists all",
        code="quoted",
        details={"quoted_in": list(paths)},
    )


def _tell(done: RemoveResult, *, earlier: bool, redacted: bool) -> None:
    if earlier:
        click.echo(f"{done.session_token} was removed earlier")
    else:
        click.echo(f"removed {len(done.removed_paths)} files and {done.removed_rows} rows of {done.session_token}")
    click.echo(f"  tombstone: {done.tombstone}")
    for path in done.pending:
        click.secho(f"  cannot be deleted yet, every pass tries again: {path}", fg="red")
    if done.purged is not None:
        say_purged(done.purged, f"remove {done.session_token}")
    elif done.git_history == "contains":
        click.secho("  the workspace's git history still holds the text; to rewrite it:", fg="yellow")
        click.secho(f"    signet-sync remove {done.session_token} --purge-history", fg="yellow")
    for path in done.quoted_in:
        if redacted:
            click.echo(f"  quoted it, redacted: {path}")
        else:
            click.secho(f"  of another session, still quotes it: {path}", fg="yellow")
    for path in done.foreign:
        click.secho(f"  not ours, still holds text of it: {path}", fg="yellow")
    if done.memories:
        click.secho(f"  older pages name memories that nobody has any more: {', '.join(done.memories)}", fg="yellow")
        click.secho("  those that came from it go by: signet-sync forget ID --purge-history", fg="yellow")


def _undo(
    context: Context, workspace: Workspace, agent: str, name: str, *, dry_run: bool, yes: bool, as_json: bool
) -> int:
    from signet_sync.privacy import remove

    undo = remove.undoable(workspace, agent, name)
    stone = undo.tombstone
    if not dry_run:
        # Nothing is lost by it, so only a person at a terminal is asked.
        if sys.stdin.isatty() and not as_json:
            _tell_undo(undo)
            agreed("let it come back?", yes=yes, as_json=as_json)
        remove.lift(workspace, agent, name)
    if as_json:
        emit(
            {
                "agent_id": agent,
                "session_token": stone.session_token,
                "lifted": not dry_run,
                "dry_run": dry_run,
                "tombstone": undo.path,
                "session_ids": list(undo.session_ids) or None,
                "removed_at": stone.removed_at.text,
                "removed_paths": list(stone.removed_paths),
                "present": list(undo.present),
            }
        )
        return 0
    if dry_run:
        _tell_undo(undo)
        click.echo("nothing was lifted (--dry-run)")
        return 0
    click.echo(f"the removal of {stone.session_token} is lifted: its files may come back, here and on other machines")
    click.echo("  it brings nothing back by itself; what was remembered, pinned and counted of it is gone for good")
    if undo.present:
        click.echo(f"  {counted(len(undo.present), 'file')} of it stand there and are indexed by the next pass")
    click.echo("  put its files into memory/ again (a backup of yours, git, another machine), then:")
    click.echo(f"    {context.command_line('reindex')}")
    return 0


def _tell_undo(undo: Undo) -> None:
    stone = undo.tombstone
    click.secho(f"{stone.session_token}, removed {stone.removed_at.text}: {display(stone.reason)}", bold=True, err=True)
    for session_id in undo.session_ids:
        click.echo(f"  session {display(session_id)}", err=True)
    for path in stone.removed_paths:
        click.echo(f"  {path}", err=True)


def purged_document(done: PurgeResult) -> dict[str, object]:
    """Returns the result of a purge, for JSON."""
    return {
        "commits": done.commits,
        "objects": done.objects,
        "left": list(done.left),
        "waiting": done.waiting or None,
        "refused": done.refused or None,
        "nothing": done.nothing or None,
    }


def is_waiting(done: PurgeResult | None) -> bool:
    """Whether a purge was requested and is not done."""
    return done is not None and not done.is_done


def say_purged(done: PurgeResult, again: str) -> None:
    """Prints the result of a purge for a person, and how to request it `again` if it was refused."""
    if done.waiting:
        click.secho(f"  the git history still holds the text, every pass tries again: {done.waiting}", fg="red")
        return
    if done.refused:
        click.secho(f"  the git history was not purged: {done.refused}", fg="red")
        click.secho(f"  then: signet-sync {again} --purge-history", fg="red")
        return
    if done.nothing:
        click.echo(f"  nothing to purge: {done.nothing}")
        return
    click.echo(f"  git history: {counted(done.commits, 'commit')} rewritten, {counted(done.objects, 'object')} deleted")
    for path in done.left:
        click.secho(f"  not ours, its history still holds text of it: {path}", fg="yellow")


_NO_REASON = "give a --reason; it stands in the tombstone"


def refresh(workspace: Workspace, instant: int, what: str = "removed") -> None:
    """Updates the index, so that no outdated list is agreed to. Raises `Halted` if the files are missing."""
    from signet_sync.errors import Halted
    from signet_sync.sync.engine import run_pass
    from signet_sync.sync.request import Request

    outcome = run_pass(workspace, Request(now_us=instant, project=False))
    if outcome.cliff is not None:
        raise Halted(
            f"nothing can be {what} while files are away: {outcome.cliff.message}",
            path="memory",
            hint="bring memory/ back, then try again; or first: signet-sync reindex --accept-removals",
        )


def _dry(
    plans: list[SessionRemoval], quoted_in: Sequence[str], purges: list[Begun | PurgeResult], as_json: bool
) -> None:
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
                "quoted_in": list(quoted_in),
                **({"purge": [would(purge) for purge in purges]} if purges else {}),
            }
        )
        return
    _list(plans)
    for path in quoted_in:
        click.echo(f"  of another session, quotes it: {path}")
    for purge in purges:
        say_would(purge)
    click.echo("nothing was removed (--dry-run)")


def say_would(purge: Begun | PurgeResult) -> None:
    """Prints what a purge would do, for a person."""
    told = would(purge)
    if told["refused"] or told["nothing"]:
        click.echo(f"git history: nothing would be rewritten: {told['refused'] or told['nothing']}")
        return
    click.echo(
        f"git history: {counted(told['commits'], 'commit')} would be rewritten, for"
        f" {counted(told['versions'], 'version')} of files and {counted(told['messages'], 'message')}"
    )


def would(purge: Begun | PurgeResult) -> dict[str, Any]:
    """Returns what a purge would do, for JSON."""
    from signet_sync.history.purge import Begun

    found: dict[str, Any] = {"commits": 0, "versions": 0, "messages": 0, "refused": None, "nothing": None}
    if isinstance(purge, Begun):
        return {**found, **asdict(purge)}
    return {**found, "refused": purge.refused or None, "nothing": purge.nothing or None}


def _list(plans: list[SessionRemoval]) -> None:
    for plan in plans:
        for ref in plan.sessions:
            click.secho(f"session {display(ref.session_id)} ({ref.session_token})", bold=True, err=True)
        for path in plan.paths:
            click.echo(f"  {path}", err=True)


def _ask(plans: list[SessionRemoval], redacted: Sequence[str], yes: bool, as_json: bool) -> None:
    if not yes and not as_json and sys.stdin.isatty():
        _list(plans)
        for path in redacted:
            click.echo(f"  passages of it go from: {path}", err=True)
    count = sum(len(plan.paths) for plan in plans if not plan.earlier)
    more = f", and passages of them from {len(redacted)} others" if redacted else ""
    what = f"remove {counted(count, 'file')}{more} for good?"
    if all(plan.earlier for plan in plans):
        what = "rewrite the history of what was removed earlier?"
    agreed(what, yes=yes, as_json=as_json)
