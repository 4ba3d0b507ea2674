"""`redact`: removes from sealed files what the sanitizer finds today, after listing it and asking."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

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
from signet_sync.cli.reindex import progress_bar
from signet_sync.cli.remove import is_waiting, purged_document, refresh, say_purged, say_would, would

if TYPE_CHECKING:
    from signet_sync.privacy.redact import RedactResult


@click.command()
@click.argument("name", metavar="[SESSION|PATH]", required=False)
@click.option("--all", "everything", is_flag=True, help="Every artifact of every agent.")
@click.option("--reason", help="Why; kept with the file's seal.")
@click.option("--list", "listing", is_flag=True, help="List what was redacted: when, by which rules, why.")
@click.option("--dry-run", is_flag=True, help="List what would be redacted, never the secret itself.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--purge-history", is_flag=True, help="Rewrite the workspace's git history, too: no version of the files keeps it."
)
@agent_option
@now_option
@json_option
@pass_context
def redact(
    context: Context,
    name: str | None,
    everything: bool,
    reason: str | None,
    listing: bool,
    dry_run: bool,
    yes: bool,
    purge_history: bool,
    agent: str,
    now: str | None,
    as_json: bool,
) -> int:
    """Take secrets out of sealed files: of a session, of one file, or (--all) of every file.

    Looks for what the sanitizer knows as a secret today: artifacts of other programs, and ours of before a rule was
    there. Each is replaced by [REDACTED:rule]; hash and seal are made anew, and the old bytes leave seals, kept copies
    and backups. The files stay valid, and on every machine that the vault is synced to the redaction is known for one
    and followed. Manifests are redacted, too; all else in them stays. When it was done and why is kept.

    A secret that was seen by others is to be changed all the same. --purge-history rewrites every commit that holds an
    older version of the files; hashes change, and what you pushed or cloned is yours to clean.

    Killed in the middle, the same command goes on.
    """
    from signet_sync.app.workspace import opened
    from signet_sync.privacy import redact
    from signet_sync.sync.read_only import require_index
    from signet_sync.text.sanitizer import sanitize_line

    if listing:
        return _history(context, as_json)
    if (name is None) == (not everything):
        raise click.UsageError("give one SESSION or PATH, or --all")
    reason = sanitize_line(reason or "") or None
    if reason is None and not dry_run:
        raise click.UsageError("give a --reason; it is kept with the file's seal")
    instant = resolve_now(now)
    if dry_run:
        require_index(context.place())
    with opened(context.root, context.settings(), database=context.chosen_database, touch_nothing=dry_run) as workspace:
        if not dry_run:
            refresh(workspace, instant, "redacted")
        paths = redact.selected(workspace, agent, name)
        coming = redact.preview(workspace, paths, purge_history=purge_history)
        if dry_run:
            _tell(coming, as_json, dry_run=True)
            return 1 if coming.left else 0
        if (coming.files or purge_history) and not yes:
            if not as_json and sys.stdin.isatty():
                _list(coming)
            what = "rewrite the history of what was redacted earlier?"
            agreed(
                f"redact {counted(len(coming.files), 'file')} for good?" if coming.files else what,
                yes=yes,
                as_json=as_json,
            )
        with progress_bar("redacting", show=not as_json and not context.quiet) as advance:
            done = redact.redact(workspace, paths, reason or "", instant, purge_history=purge_history, progress=advance)
        for event in workspace.events:
            context.say(event)
    _tell(done, as_json, dry_run=False, name=name)
    return 1 if done.left or is_waiting(done.purged) else 0


def _history(context: Context, as_json: bool) -> int:
    from signet_sync.sync.read_only import reading
    from signet_sync.sync.store.redactions import told

    with reading(context.place()) as database:
        found = told(database)
    if as_json:
        emit({"redactions": [{"path": path, "at": at, "told": reason} for path, at, reason in found]})
        return 0
    if not found:
        click.echo("nothing was redacted")
    for path, at, reason in found:
        click.echo(f"{at}  {path}: {reason}")
    return 0


def _tell(done: RedactResult, as_json: bool, *, dry_run: bool, name: str | None = None) -> None:
    if as_json:
        emit(
            {
                "dry_run": dry_run,
                "redacted": [{"path": one.path, "rules": dict(sorted(one.rules.items()))} for one in done.files],
                "left": [{"path": one.path, "message": one.message, "hint": one.hint or None} for one in done.left],
                "git_history": done.git_history,
                **({} if done.purged is None else {"purged": purged_document(done.purged)}),
                **({} if done.begun is None else {"purge": would(done.begun)}),
            }
        )
        return
    _list(done)
    if dry_run:
        if done.begun is not None:
            say_would(done.begun)
        click.echo("nothing was redacted (--dry-run)")
        return
    click.echo(f"redacted {counted(len(done.files), 'file')}")
    again = f"redact {name if name is not None else '--all'} --reason '…'"
    if done.purged is not None:
        say_purged(done.purged, again)
    elif done.files and done.git_history == "contains":
        click.secho("  the workspace's git history holds versions of these files; to redact them, too:", fg="yellow")
        click.secho(f"    signet-sync {again} --purge-history", fg="yellow")


def _list(found: RedactResult) -> None:
    for one in found.files:
        rules = ", ".join(f"{rule} × {count}" for rule, count in sorted(one.rules.items()))
        click.echo(f"  {one.path}: {rules}")
    for left in found.left:
        click.secho(f"  not redacted: {left.path}: {left.message}", fg="red")
        if left.hint:
            click.echo(f"    {left.hint}")
