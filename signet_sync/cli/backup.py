"""`backup`: writes what exists only in rows to a file, lists backups, and restores them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from signet_sync.cli.main import Context, agreed, counted, emit, json_option, now_option, pass_context, resolve_now
from signet_sync.errors import UsageError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from signet_sync.backup.incoming import DroppedRows, Incoming
    from signet_sync.backup.operations import BackupInfo, RestoreResult
    from signet_sync.sync.workspace import Workspace

# The names that a person uses for the rows of each table.
_KINDS = {
    "memories": ("memory", "memories"),
    "pins": ("pin", "pins"),
    "memory_promotions": ("promotion", "promotions"),
    "recall_events": ("hit of recall", "hits of recall"),
    "seals": ("seal", "seals"),
    "sealed_bytes": ("seal got its bytes back", "seals got their bytes back"),
    "memory_artifact_tombstones": ("removal", "removals"),
    "session_transcripts": ("live turn", "live turns"),
}

_GROUP = """Keep what no file holds: memories, pins, promotions, hits of recall, counters, seals,
live turns.

All else is made of the markdown files by signet-sync reindex. The agent writes a backup by itself whenever
such a row has changed, one a day, into the state folder; backup.keep says how many of them stay.

\b
A move to a new machine:
  old:  copy the workspace folder, and: signet-sync backup create /media/stick/signet.backup
  new:  put the folder back, and: signet-sync backup restore /media/stick/signet.backup

Hooks and the service belong to a machine: signet-sync hooks install auto, signet-sync service install.
"""

_CREATE = """Write a backup now.

FILE is any place outside the workspace; without it the backup goes to the automatic ones in the state
folder. It holds the memories of all agents, private ones too, and the sealed text of every artifact, in
plain: only you can read the file, so put it where that stays so.

A removal (remove, forget) cleans the backups in the state folder. It cannot reach a FILE elsewhere, but what was
removed since is left out when that is restored.
"""

_RESTORE = """Bring rows back from a backup; rows that are there win.

BACKUP is a file, or the name of one that backup list shows; without it, the newest of these is taken.
What was removed or forgotten since stays gone. What is there now is kept first, as a backup of its own.
A workspace that has no state folder gets one, so a copied workspace and the file are all that a new
machine needs.
"""


@click.group(help=_GROUP, short_help="Write, list and restore backups.")
def backup() -> None:
    pass


@backup.command(help=_CREATE, short_help="Write a backup now.")
@click.argument("file", required=False)
@now_option
@json_option
@pass_context
def create(context: Context, file: str | None, now: str | None, as_json: bool) -> int:
    from signet_sync.backup import operations as backup_operations

    instant = resolve_now(now)
    with opened(context) as workspace:
        done = backup_operations.create(workspace, file, instant)
        say_events(context, workspace)
    if as_json:
        emit({"path": done.path, "bytes": done.size, "rows": done.rows, "total": sum(done.rows.values())})
        return 0
    click.echo(f"wrote {done.path} ({told_size(done.size)}): {told_rows(done.rows) or 'nothing is kept yet'}")
    if file is not None:
        click.echo("A later removal cannot reach this file; restoring it leaves out what was removed since.")
    return 0


@backup.command("list")
@json_option
@pass_context
def list_(context: Context, as_json: bool) -> int:
    """The backups in the state folder, newest first: when, how large, what is in them, whole or damaged."""
    from signet_sync.backup import operations as backup_operations
    from signet_sync.storage.safe_paths import require_root

    folder = context.state()
    found = backup_operations.list_backups(folder)
    if not found:
        require_root(context.root)
    if as_json:
        emit({"folder": folder.backups, "backups": [_document(one) for one in found]})
        return 0
    if not found:
        click.echo(f"no backups yet in {folder.backups}")
        context.say(f"to write one: {context.command_line('backup create')}")
    for one in found:
        click.secho(os.path.basename(one.path), bold=True, nl=False)
        click.echo(f"  {one.made_at[:16].replace('T', ' ')} UTC  {told_size(one.size)}  ", nl=False)
        if one.trouble:
            click.secho(one.trouble, fg="red")
        else:
            click.echo(f"whole: {told_rows(one.rows) or 'no rows'}")
    return 0


def _document(one: BackupInfo) -> dict[str, Any]:
    return {
        "name": os.path.basename(one.path),
        "path": one.path,
        "made_at": one.made_at,
        "bytes": one.size,
        "rows": one.rows,
        "total": sum(one.rows.values()),
        "ok": not one.trouble,
        "trouble": one.trouble or None,
    }


@backup.command(help=_RESTORE, short_help="Bring rows back from a backup.")
@click.argument("source", metavar="[BACKUP]", required=False)
@click.option("--yes", is_flag=True, help="Do not ask.")
@now_option
@json_option
@pass_context
def restore(context: Context, source: str | None, yes: bool, now: str | None, as_json: bool) -> int:
    from signet_sync.backup import incoming
    from signet_sync.backup import operations as backup_operations
    from signet_sync.storage.safe_paths import require_root

    instant = resolve_now(now)
    require_root(context.root)
    path = backup_operations.find_backup(context.state(), source)
    with incoming.of_backup(path, backup_operations.places(context.root)) as rows, opened(context) as workspace:
        comes = backup_operations.preview_merge(workspace, rows, instant, absent=True)
        warn_of_another(context, workspace, rows)
        for table, count in sorted(rows.unknown.items()):
            context.say(f"note: {counted(count, 'row')} of {table} that no signet-sync writes; left out")
        ask(comes, rows.dropped, yes=yes, as_json=as_json)
        done = backup_operations.merge_rows(workspace, rows, instant, absent=True)
        say_events(context, workspace)
    tell(context, path, done, rows.dropped, as_json=as_json)
    return 0


# ── shared with bundles ──


def opened(context: Context, *, touch_nothing: bool = False) -> AbstractContextManager[Workspace]:
    """Opens the workspace with a database that outlasts the command."""
    from signet_sync.app.workspace import opened as workspace_opened

    if context.chosen_database == ":memory:":
        raise UsageError("a database in memory is gone when the command ends", hint="leave --db :memory: out")
    return workspace_opened(
        context.root, context.settings(), database=context.chosen_database, touch_nothing=touch_nothing
    )


def say_events(context: Context, workspace: Workspace) -> None:
    """Prints what happened meanwhile."""
    for line in workspace.events:
        context.say(line)


def told_rows(rows: dict[str, int]) -> str:
    """`3 memories, 1 pin, 12 other rows`."""
    said = [f"{rows[table]:,} {_KINDS[table][rows[table] != 1]}" for table in _KINDS if rows.get(table)]
    others = sum(count for table, count in rows.items() if table not in _KINDS)
    return ", ".join([*said, *([f"{counted(others, 'other row')}"] if others else [])])


def told_size(size: int) -> str:
    """`512 bytes`, `3.4 MB`."""
    for unit, bytes_of in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= bytes_of:
            return f"{size / bytes_of:.1f} {unit}"
    return counted(size, "byte")


def told_sifted(sifted: DroppedRows) -> list[str]:
    """Lists what was left out, and why, a line each."""
    them = (
        (sifted.sessions, "session that was removed since", "sessions that were removed since"),
        (
            sifted.memories,
            "memory that was forgotten since (to have it again: signet-sync remember)",
            "memories that were forgotten since (to have them again: signet-sync remember)",
        ),
        (sifted.undone, "removal that was undone since", "removals that were undone since"),
        (
            sifted.seals,
            "seal of a file that is not here (import again once it is)",
            "seals of files that are not here (import again once they are)",
        ),
    )
    return [f"left out: {counted(count, one, several)}" for count, one, several in them if count]


def warn_of_another(context: Context, workspace: Workspace, rows: Incoming) -> None:
    """Warns that the rows come from a workspace with another id."""
    if rows.workspace and rows.workspace != workspace.state.key:
        context.say("note: it was written from a workspace with another id, another one or a copy of it")


def ask(comes: dict[str, int], sifted: DroppedRows, *, yes: bool, as_json: bool) -> None:
    """Asks a person on a terminal; a removal that deletes files needs an answer everywhere."""
    if yes:
        return
    if sifted.goes:
        for path in () if as_json else sifted.goes:
            click.echo(f"  {path}", err=True)
        agreed(
            f"a removal in it covers what stands here: delete {counted(len(sifted.goes), 'file')} for good?",
            yes=yes,
            as_json=as_json,
        )
    elif any(comes.values()) and not as_json and sys.stdin.isatty():
        agreed(f"bring in {told_rows(comes)}?", yes=yes, as_json=as_json)


def tell(
    context: Context, source: str, done: RestoreResult, sifted: DroppedRows, *, as_json: bool, **more: object
) -> None:
    """Prints what was restored."""
    if done.waiting:
        context.say(f"pages follow with the next pass: {done.waiting}")
    if as_json:
        emit(
            {
                "source": source,
                "rows": done.rows,
                "total": sum(done.rows.values()),
                "left_out": left_out(sifted),
                "removed_files": list(sifted.goes),
                "before": done.before,
                **more,
            }
        )
        return
    click.echo(f"came in: {told_rows(done.rows) or 'nothing that was not there'}")
    for line in told_sifted(sifted):
        click.echo(line)
    if done.before is not None:
        click.echo(f"what was here before: {done.before}")


def left_out(sifted: DroppedRows) -> dict[str, int]:
    """Returns what was left out, for JSON."""
    return {
        "removed_sessions": sifted.sessions,
        "forgotten_memories": sifted.memories,
        "undone_removals": sifted.undone,
        "seals_of_absent_files": sifted.seals,
    }
