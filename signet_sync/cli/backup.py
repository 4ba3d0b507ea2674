"""`backup`, `history`, `checkpoint`: earlier states, of what exists only in rows, and of the workspace's files."""

from __future__ import annotations

import os
from collections.abc import Mapping

import click

from signet_sync.backup import incoming
from signet_sync.backup import operations as backup_operations
from signet_sync.cli.main import Context
from signet_sync.cli.parsing import Group, command, refuse_unknown
from signet_sync.formats.paths import display
from signet_sync.formats.timestamps import SECOND, local_minute
from signet_sync.history import operations as history_operations
from signet_sync.history.log import list_commits
from signet_sync.history.operations import DISABLED, CheckpointResult
from signet_sync.storage.files import require_root
from signet_sync.storage.locations import now_us
from signet_sync.text.phrases import count_noun, human

_GROUP = """Save what no file contains: memories, promotions, recall hits, counters, seals, live turns.

Everything else is rebuilt from the markdown files by signet-sync reindex. The agent writes a backup into
the state folder whenever such a row has changed, at most one a day; the newest three are kept.

\b
Moving to a new machine:
  old:  copy the workspace folder, and: signet-sync backup create /media/stick/signet.backup
  new:  put the folder back, and: signet-sync backup restore /media/stick/signet.backup

Hooks and the service belong to a machine: signet-sync hooks install auto, signet-sync service install.
"""
backup = Group("backup", help=_GROUP, short_help="Create, list and restore backups.")


@command("--now", "--json", of=backup)
@click.argument("file", required=False)
def create(context: Context, file: str | None) -> None:
    """Write a backup now.

    FILE is any path outside the workspace; without it the backup is added to the automatic ones in the state folder.
    It contains the memories of all agents, private ones included, and the sealed text of every artifact, unencrypted:
    keep it in a safe place. A later removal cannot reach it, but restoring it leaves out what was removed since.
    """
    with context.open_workspace(lasting=True) as workspace:
        path, rows = backup_operations.create(workspace, file, context.now_us)
    size = os.path.getsize(path)
    shown = f"wrote {path} ({human(size)}): {_count_rows(rows) or 'no rows yet'}"
    if file is not None:
        shown += "\nA later removal cannot reach this file; restoring it leaves out what was removed since."
    context.answer({"path": path, "bytes": size, "rows": rows, "total": sum(rows.values())}, shown)


@command("--json", of=backup, name="list")
def list_(context: Context) -> None:
    """List the backups in the state folder, newest first: time, size, content, and whether they are intact."""
    folder = context.state()
    found = backup_operations.list_backups(folder)
    if not found:
        require_root(context.root)

    def show() -> None:
        if not found:
            click.echo(f"no backups yet in {folder.backups}")
            context.say(f"to write one: {context.command_line('backup create')}")
        for one in found:
            intact = f"intact: {_count_rows(one['rows']) or 'no rows'}"
            what = intact if one["ok"] else click.style(one["trouble"], fg="red")
            name, when = click.style(one["name"], bold=True), one["made_at"][:16].replace("T", " ")
            click.echo(f"{name}  {when} UTC  {human(one['bytes'])}  {what}")

    context.answer({"folder": folder.backups, "backups": found}, show)


@command("--yes", "--now", "--json", of=backup)
@click.argument("source", metavar="[BACKUP]", required=False)
@click.option(
    "--replace", is_flag=True, help="Forget the memories that are not in it, as those that `migrate` brought."
)
def restore(context: Context, source: str | None, replace: bool, yes: bool) -> None:
    """Restore rows from a backup; existing rows are not changed.

    BACKUP is a file, or the name of one that backup list shows (default: the newest of these). What was removed or
    forgotten since is left out. The present rows are saved as a backup first.
    """
    require_root(context.root)
    path = backup_operations.find_backup(context.state(), source)
    if replace:
        with incoming.read_backup(path) as rows, context.open_workspace(lasting=True) as workspace:
            if gone := incoming.others(workspace, rows):
                what = count_noun(len(gone), "memory that is not in it", "memories that are not in it")
                context.confirm(f"take out {what}?", yes=yes)
                incoming.drop_others(workspace, rows, context.now_us)
                context.say(f"taken out: {what}")
    with incoming.read_backup(path) as rows:
        for table, count in sorted(rows.invalid.items()):
            context.say(f"note: {count_noun(count, 'invalid row')} of {table} left out")
        contains = incoming.count_rows(rows.rows)
        with context.open_workspace(lasting=True) as workspace:
            incoming.drop_removed(workspace, rows, context.now_us)
            if rows.workspace and rows.workspace != workspace.state.key:
                context.say("note: it was written from a workspace with another id: another one, or a copy of this one")
            if rows.goes and not yes:  # a removal that deletes files needs an answer everywhere
                for one in () if context.as_json else rows.goes:
                    click.echo(f"  {one}", err=True)
                files = count_noun(len(rows.goes), "file")
                context.confirm(f"a removal in it covers files here: delete {files} for good?", yes=False)
            taken, before, waiting = backup_operations.merge_rows(workspace, rows, context.now_us)
    left_out = {name: rows.left_out[name] for name in ("removed_sessions", "forgotten_memories", "undone_removals")}
    if waiting:
        context.say(f"pages are updated by the next pass: {waiting}")

    def show() -> None:
        click.echo(f"read {display(path)}: {_count_rows(contains) or 'no rows'}")
        click.echo(f"added: {_count_rows(taken) or 'nothing new'}")
        if any(left_out.values()):
            told = ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in left_out.items() if count)
            click.echo(f"left out, as gone since: {told}")
        if before is not None:
            click.echo(f"backup of the previous rows: {before}")

    document = {
        "source": path,
        "contains": contains,
        "rows": taken,
        "total": sum(taken.values()),
        "left_out": left_out,
        "removed_files": list(rows.goes),
        "before": before,
    }
    context.answer(document, show)


def _count_rows(rows: Mapping[str, int]) -> str:
    """Returns `3 memories, 12 other rows`."""
    memories, others = rows.get("memories", 0), sum(count for table, count in rows.items() if table != "memories")
    told = [(memories, "memory", "memories"), (others, "other row" if memories else "row", None)]
    return ", ".join(count_noun(count, one, many or f"{one}s") for count, one, many in told if count)


# ── the history ──


@command("--agent", "--now", "--json")
@click.argument("note", nargs=-1)
def checkpoint(context: Context, note: tuple[str, ...]) -> int:
    """Commit the workspace as it is now; NOTE is the reason (default: manual).

    Exit 0 if there is nothing to commit, 2 if the history is off or must not be written to.
    """
    with context.open_workspace() as workspace:
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
    with context.open_workspace() as workspace:
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


@command(of=history, name="close-sessions", hidden=True)
def close_sessions(context: Context) -> int:
    """Commit sessions that ended and memories that were promoted since the last time; the agent calls this."""
    with context.open_workspace() as workspace:
        commits = [
            act(workspace, now_us()) for act in (history_operations.commit_promotions, history_operations.commit_ends)
        ]
    for done in commits:
        if done is not None and not done.ok:
            click.echo(f"{done.reason}: {done.hint}", err=True)
            return 1
    return 0
