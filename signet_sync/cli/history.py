"""`checkpoint` and `history`: commit the workspace, list and compare commits, forget the history."""

from __future__ import annotations

from collections.abc import Iterable

import click

from signet_sync.cli.main import Context
from signet_sync.cli.parsing import Group, command, refuse_unknown
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import SECOND, local_minute
from signet_sync.history import operations as history_operations
from signet_sync.history.log import list_commits
from signet_sync.history.operations import DISABLED, CheckpointResult
from signet_sync.storage.locations import now_us
from signet_sync.text.phrases import count_noun


@command("--agent", "--now", "--json")
@click.argument("note", nargs=-1)
def checkpoint(context: Context, note: tuple[str, ...]) -> int:
    """Commit the workspace as it is now; NOTE is the reason (default: manual).

    Exit 0 if there is nothing to commit, 2 if the history is off or must not be written to.
    """
    with context.opened() as workspace:
        done = history_operations.checkpoint(workspace, context.agent, " ".join(note), context.now_us)
    context.say(done.hint)
    context.answer(done.document(), lambda: _show_checkpoint(done))
    return 0 if done.ok else 2


def _show_checkpoint(done: CheckpointResult) -> None:
    if done.oid is not None:
        click.echo(click.style(done.oid, fg="yellow") + f"  {display(done.subject)}")
    else:
        click.echo(done.reason if done.ok else f"not committed: {done.reason}")
    if done.skipped_files:
        many = count_noun(len(done.skipped_files), "file")
        click.echo(f"left out ({many}: too large, containing a secret, or not a regular file):")
        for path in done.skipped_files:
            click.echo(f"  {display(path)}")


@command("--json", cls=Group, invoke_without_command=True)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Most commits shown.")
@click.option("--diff", "with_diff", is_flag=True, help="Also show what changed from the oldest shown to the newest.")
def history(context: Context, limit: int, with_diff: bool) -> None:
    """List the commits of the workspace, newest first; `forget` deletes all of them."""
    ctx = click.get_current_context()
    if ctx.invoked_subcommand is not None:
        return
    refuse_unknown(ctx)
    settings = context.settings()
    listed = list_commits(context.root, limit, with_diff=with_diff)
    if not listed.commits:
        off = f"the history is off; {history_operations.REMEDY}"
        context.say("no commits yet" if settings.history_enabled else off)
    if with_diff and len(listed.commits) == 1:
        context.say("a single commit has nothing to be compared with; use --limit 2 or more")
    context.say(listed.cut)

    def show() -> None:
        for commit in listed.commits:
            when = local_minute(commit.timestamp * SECOND)
            by = click.style(f"({display(commit.author)})", dim=True)
            click.echo(f"{click.style(commit.short_oid, fg='yellow')}  {when}  {display(commit.subject)}  {by}")
        if listed.diff:
            click.echo("\n" + listed.diff, nl=False)

    context.answer(listed.document(), show)


@command("--yes", "--agent", "--now", "--json", of=history)
def forget(context: Context, yes: bool) -> int:
    """Delete the workspace's git history for good, and commit what is there now.

    After a session was removed, a memory forgotten or a secret redacted, older commits still contain it. Commits of
    others, branches, tags and remotes are listed and nothing is deleted; --yes deletes them, too. Copies that you
    pushed or cloned are yours to clean.
    """
    with context.opened() as workspace:
        if not yes:
            history_operations.refuse_others(workspace)
        context.confirm("delete every commit of the history for good?", yes=yes)
        done = history_operations.forget(workspace, context.agent, context.now_us, yes=yes)

    def show() -> None:
        click.echo("the history is deleted")
        if done.reason != DISABLED:
            _show_checkpoint(done)

    context.answer(done.document(), show)
    return 0 if done.ok or done.reason == DISABLED else 2


def show_remedy(context: Context, what: str, paths: Iterable[str]) -> None:
    """Prints that the history contains something that was removed, and the command that takes it out."""
    line = history_operations.filter_line(context.root, context.state().key, paths)
    click.secho(f"  the workspace's git history {what}; {'in a fresh clone' if line else 'to delete it'}:", fg="yellow")
    click.secho(f"    {line or context.command_line('history forget')}", fg="yellow")


@command(of=history, name="close-sessions", hidden=True)
def close_sessions(context: Context) -> int:
    """Commit sessions that ended and memories that were promoted since the last time; the agent calls this."""
    with context.opened() as workspace:
        commits = [
            act(workspace, now_us()) for act in (history_operations.after_dreams, history_operations.after_sessions)
        ]
    for done in commits:
        if done is not None and not done.ok:
            click.echo(f"{done.reason}: {done.hint}", err=True)
            return 1
    return 0
