"""`checkpoint` and `history`: commit the workspace, list and compare commits, and restore a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from signet_sync.cli.main import (
    Context,
    agent_option,
    counted,
    emit,
    json_option,
    now_option,
    pass_context,
    resolve_now,
)

if TYPE_CHECKING:
    from signet_sync.history.log import CommitSummary
    from signet_sync.history.operations import CheckpointResult


@click.command()
@click.argument("note", nargs=-1)
@agent_option
@now_option
@json_option
@pass_context
def checkpoint(context: Context, note: tuple[str, ...], agent: str, now: str | None, as_json: bool) -> int:
    """Commit the workspace as it is now; NOTE says why (else: manual).

    Nothing to commit is fine (exit code 0); a history that is off, or not ours to write to, is not (2).
    """
    from signet_sync.app.workspace import opened
    from signet_sync.history import operations as history_operations

    instant = resolve_now(now)
    with opened(context.root, context.settings(), database=context.chosen_database) as workspace:
        done = history_operations.checkpoint(workspace, agent, " ".join(note), instant)
        for text in workspace.events:
            context.say(text)
    if done.hint:
        context.say(done.hint)
    if as_json:
        emit(history_operations.checkpoint_document(done))
    else:
        _tell(done)
    return 0 if done.ok else 2


def _tell(done: CheckpointResult) -> None:
    from signet_sync.formats.paths import display

    if done.oid is not None:
        click.echo(click.style(done.oid, fg="yellow") + f"  {display(done.subject)}")
    else:
        click.echo(done.reason if done.ok else f"not committed: {done.reason}")
    if done.skipped_files:
        many = counted(len(done.skipped_files), "file")
        click.echo(f"left out ({many}, too large, holding a secret, or no plain file):")
        for path in done.skipped_files:
            click.echo(f"  {display(path)}")


@click.group(invoke_without_command=True)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Most commits shown.")
@click.option("--diff", "with_diff", is_flag=True, help="And what changed from the oldest shown to the newest.")
@json_option
@click.pass_context
def history(ctx: click.Context, limit: int, with_diff: bool, as_json: bool) -> int:
    """What happened to the workspace, newest first; `history restore` brings a file back."""
    if ctx.invoked_subcommand is not None:
        return 0
    context: Context = ctx.obj
    from signet_sync.history import operations as history_operations

    settings = context.settings()
    listed = history_operations.list_commits(context.root, settings, limit, with_diff=with_diff)
    if not listed.commits:
        context.say(
            "no commits yet" if settings.history_enabled else f"the history is off; {history_operations.REMEDY}"
        )
    if with_diff and len(listed.commits) == 1:
        context.say("one commit alone has none to be compared with; --limit 2 or more shows what changed")
    if listed.diff is not None and listed.diff.cut:
        context.say(listed.diff.cut)
    if as_json:
        emit(history_operations.document(listed))
        return 0
    for commit in listed.commits:
        _show(commit)
    if listed.diff is not None and listed.diff.text:
        click.echo("\n" + listed.diff.text, nl=False)
    return 0


def _show(commit: CommitSummary) -> None:
    from signet_sync.formats.paths import display
    from signet_sync.formats.timestamps import SECOND, iso

    when = iso(commit.timestamp * SECOND)
    click.echo(
        click.style(commit.short_oid, fg="yellow")
        + f"  {when[:10]} {when[11:16]}  {display(commit.subject)}  "
        + click.style(f"({display(commit.author)})", dim=True)
    )


@history.command()
@click.argument("path")
@click.option("--at", "revision", metavar="REV", required=True, help="A hash or its first digits, HEAD or HEAD~3.")
@now_option
@json_option
@pass_context
def restore(context: Context, path: str, revision: str, now: str | None, as_json: bool) -> int:
    """Bring a file back as a commit holds it; what stands there now is never lost."""
    from signet_sync.app.workspace import opened
    from signet_sync.history.operations import SHORT
    from signet_sync.history.restore import restore as bring_back

    instant = resolve_now(now)
    with opened(context.root, context.settings(), database=context.chosen_database) as workspace:
        done = bring_back(workspace, path, revision, instant)
        for text in workspace.events:
            context.say(text)
    if as_json:
        emit({"path": done.path, "oid": done.oid[:SHORT], "restored": done.written, "kept": done.kept})
    elif done.written:
        click.echo(f"restored {done.path} as of {done.oid[:SHORT]}")
    else:
        click.echo(f"{done.path} is as it was in {done.oid[:SHORT]}; nothing was written")
    return 0


@history.command("close-sessions", hidden=True)
@pass_context
def close_sessions(context: Context) -> int:
    """Commit what has ended or risen since the last time; the agent calls this."""
    from signet_sync.app.workspace import opened
    from signet_sync.history import operations as history_operations
    from signet_sync.storage.clock import now_us

    with opened(context.root, context.settings(), database=context.chosen_database) as workspace:
        commits = [
            act(workspace, now_us()) for act in (history_operations.after_dreams, history_operations.after_sessions)
        ]
    for done in commits:
        if done is not None and not done.ok:
            click.echo(f"{done.reason}: {done.hint}", err=True)
            return 1
    return 0
