"""`redact`: removes from sealed files what the sanitizer finds today, after listing it and asking."""

from __future__ import annotations

import click

from signet_sync.cli.main import Context, agent_option, confirm, json_option, now_option, pass_context, yes_option
from signet_sync.cli.parsing import Command, OfWorkspace
from signet_sync.cli.reindex import progress_bar
from signet_sync.privacy import redact as redactions
from signet_sync.privacy.redact import RedactResult
from signet_sync.privacy.remove import refresh
from signet_sync.sync.read_only import reading, require_index
from signet_sync.sync.store.violations import list_redacted
from signet_sync.text.phrases import count_noun
from signet_sync.text.sanitizer import sanitize_line


@click.command(cls=Command)
@click.argument("name", type=OfWorkspace(), metavar="[SESSION|PATH]", required=False)
@click.option("--all", "everything", is_flag=True, help="Every artifact of every agent.")
@click.option("--reason", help="Why; kept with the file's seal.  [required to redact]")
@click.option("--list", "listing", is_flag=True, help="List what was redacted: when, by which rules, why.")
@click.option("--dry-run", is_flag=True, help="List what would be redacted, never the secret itself.")
@yes_option
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
) -> int:
    """Remove secrets from sealed files: of a session, of one file, or (--all) of every file.

    Finds what the sanitizer recognises as a secret today: in artifacts of other programs, and in our own that are older
    than a rule. Each secret is replaced by [REDACTED:rule]; hash and seal are computed again, and the old bytes are
    deleted from seals, kept copies and backups. The files stay valid, and every machine that the vault is synced to
    recognises the redaction and follows it. Manifests are redacted, too; all else in them stays. Time and reason are
    recorded.

    A secret that others have seen must be changed all the same. Older versions of the files in the workspace's git
    history are not changed; if there are any, the answer says so.

    If it is interrupted, run the same command again to continue.
    """
    if listing:
        return _history(context)
    if (name is None) == (not everything):
        raise click.UsageError("give one SESSION or PATH, or --all")
    reason = sanitize_line(reason or "") or None
    if reason is None and not dry_run:
        raise click.UsageError("--reason is required; it is kept with the file's seal")
    if dry_run:
        require_index(context.place())
    with context.opened(touch_nothing=dry_run) as workspace:
        if not dry_run:
            refresh(workspace, context.now_us, "redacted")
        paths = redactions.select_artifacts(workspace, context.agent, name)
        coming = redactions.preview(workspace, paths)
        if dry_run:

            def show_preview() -> None:
                _list(coming)
                click.echo("nothing was redacted (--dry-run)")

            context.answer(_document(coming, dry_run=True), show_preview)
            return 1 if coming.left else 0
        if coming.files:
            question = f"redact {count_noun(len(coming.files), 'file')} for good?"
            confirm(context, question, yes=yes, listing=lambda: _list(coming))
        with progress_bar("redacting", show=not context.as_json and not context.quiet) as advance:
            done = redactions.redact(workspace, paths, reason or "", context.now_us, progress=advance)

    def show() -> None:
        _list(done)
        click.echo(f"redacted {count_noun(len(done.files), 'file')}")
        if done.files and done.git_history == "contains":
            from signet_sync.cli.history import show_remedy  # most workspaces have no history

            show_remedy(context, "contains versions of these files", [one.path for one in done.files])

    context.answer(_document(done, dry_run=False), show)
    return 1 if done.left else 0


def _history(context: Context) -> int:
    with reading(context.place()) as database:
        found = list_redacted(database)

    def show() -> None:
        for path, at, reason in found:
            click.echo(f"{at}  {path}: {reason}")
        if not found:
            click.echo("nothing was redacted")

    context.answer({"redactions": [{"path": path, "at": at, "told": reason} for path, at, reason in found]}, show)
    return 0


def _document(done: RedactResult, *, dry_run: bool) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "redacted": [{"path": one.path, "rules": dict(sorted(one.rules.items()))} for one in done.files],
        "left": [{"path": one.path, "message": one.message, "hint": one.hint or None} for one in done.left],
        "git_history": done.git_history,
    }


def _list(found: RedactResult) -> None:
    for one in found.files:
        rules = ", ".join(f"{rule} × {count}" for rule, count in sorted(one.rules.items()))
        click.echo(f"  {one.path}: {rules}")
    for left in found.left:
        click.secho(f"  not redacted: {left.path}: {left.message}", fg="red")
        if left.hint:
            click.echo(f"    {left.hint}")
